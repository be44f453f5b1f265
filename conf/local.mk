# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += conf/libconf.a
conf_libconf_a_SOURCES = conf/conf.h conf/priv.h conf/conf.c conf/copy.c conf/account.c conf/raw.c conf/table.c conf/build.c \
	conf/compare.c conf/lun.c conf/source.h conf/source.c conf/bundle.c \
	conf/types.c conf/types_lun.c conf/write.c conf/diff.c conf/ids.c conf/access.c
conf_libconf_a_SOURCES += conf/lun_pages.c conf/keys.c
conf_libconf_a_SOURCES += conf/syntax.h conf/syntax.c conf/syntax_tgt.c conf/syntax_iet.c \
	conf/syntax_iet_acl.c conf/syntax_lio.h conf/syntax_lio.c conf/syntax_lio_so.c \
	conf/syntax_lio_acl.c conf/syntax_json.h conf/syntax_json.c
