# SPDX-License-Identifier: BSD-2-Clause
sbin_PROGRAMS += evtgtd
noinst_LIBRARIES += target/libtarget.a
target_libtarget_a_SOURCES = target/target.h target/pdu.h target/rx.h target/tx.h target/auth.h target/keys.h target/nego.h \
	target/conn.c target/datain.c target/dataout.c target/logout.c target/nop.c target/pdutab.c \
	target/async.c target/registry.c target/reject.c target/redirect.c target/redirect_ask.c \
	target/redirect.h target/rx.c target/sess.c target/sess_establish.c \
	target/sess_shutdown.c target/task.c target/tmf.c \
	target/tx.c target/xp_plain.c \
	target/account.c target/account.h target/account_model.c target/acl.c target/acl_files.c target/acl_list.c target/acl_priv.h \
	target/admin_account.c target/chap.c target/chap.h target/chap_alg.c target/chap_slow.c \
	target/discovery.c target/keys.c target/login.c target/name.c target/nego.c \
	target/text.c target/isns_dd.c target/isns_dd.h \
	target/isns.c target/isns.h target/isns_client.c target/isns_client.h \
	target/isns_client_dd.c target/isns_client_notice.c target/isns_inbound.c \
	target/isns_inbound.h target/isns_link.c target/isns_link.h target/isns_proto.c \
	target/isns_proto.h target/isns_reg.c target/isns_reg.h \
	target/accept.c target/announce.c target/half.c target/portal.c target/portal_owner.c \
	target/admin.c target/admin.h target/admin_lun.c target/admin_portal.c target/admin_priv.h target/admin_req.c \
	target/admin_config.c target/admin_drain.c target/admin_export.c target/apply_ask.h target/admin_sess.c target/admin_sys.c target/admin_zram.c target/apply_zram.c target/apply_zram.h target/admin_target.c \
	target/apply.c target/apply.h target/apply_access.c target/apply_access.h target/apply_commit.c target/apply_diff.c target/apply_diff_target.c \
	target/apply_saved.c target/apply_saved.h target/apply_saved_lay.c \
	target/apply_opts.c target/apply_prepare.c target/apply_run.c target/apply_source.c \
	target/apply_target.c target/apply_users.c target/apply_view.c target/apply_look.c target/apply_lun.c target/apply_store.c target/apply_store.h \
	target/model.c target/model.h \
	target/node.c target/notify.c target/notify.h target/places.c target/places.h \
	target/places_proof.c target/places_proof.h target/watch.c
evtgtd_SOURCES = target/main.c target/main_args.c target/main_args.h target/main_compat.c \
	target/main_user.c
evtgtd_LDADD = target/libtarget.a conf/libconf.a scsi/libscsi.a backends/libbackends.a \
	base/libbase.a $(BACKENDS_LIBS) $(BASE_LIBS)
target_libtarget_a_SOURCES += target/apply_exchange.c
