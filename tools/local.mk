# SPDX-License-Identifier: BSD-2-Clause
sbin_PROGRAMS += evtgtadm
evtgtadm_SOURCES = tools/evtgtadm.c tools/adm.h tools/call.c tools/convert.c tools/print.c tools/tgtadm.c \
	tools/tgt_admin.c tools/tgt_admin.h tools/tgt_admin_conf.c tools/tgt_admin_daemon.c tools/tgt_admin_lines.c tools/tgt_setup_lun.c tools/tgtimg.c \
	tools/iet.h tools/iet_proc.c tools/ietadm.c tools/ietadm_show.c
evtgtadm_LDADD = conf/libconf.a base/libbase.a $(BASE_LIBS)

# The tables of the code for docs/ and for tests/lint/docs.
noinst_PROGRAMS += tools/dump
tools_dump_SOURCES = tools/dump.c
tools_dump_LDADD = target/libtarget.a scsi/libscsi.a backends/libbackends.a base/libbase.a $(BASE_LIBS)

# evtgtadm and evtgtd under the names of the programs they stand for, and their pages: only when asked for, since
# tgt may be installed as well.  `make install-compat compatdir=DIR compatmandir=DIR` puts them elsewhere.
compat_programs = tgtadm tgt-admin tgt-setup-lun tgtimg ietadm
compat_pages = tgtadm.8 tgt-admin.8 tgt-setup-lun.8 tgtimg.8 ietadm.8
compat_daemons = tgtd ietd
compatdir = $(sbindir)
compatmandir = $(mandir)/man8
pagesdir = $(pkgdatadir)/man8
dist_pages_DATA = $(compat_pages:%=docs/%)
EXTRA_DIST += tools/compat-links
compat_links = $(compat_programs:%=$(compatdir)/%=$(sbindir)/evtgtadm) \
	$(compat_daemons:%=$(compatdir)/%=$(sbindir)/evtgtd) \
	$(compat_daemons:%=$(compatmandir)/%.8=$(mandir)/man8/evtgtd.8) \
	$(compat_pages:%=$(compatmandir)/%=$(pagesdir)/)
install-compat:
	@sh $(srcdir)/tools/compat-links install "$(DESTDIR)" $(compat_links)
uninstall-compat:
	@sh $(srcdir)/tools/compat-links uninstall "$(DESTDIR)" $(compat_links)
.PHONY: install-compat uninstall-compat
