# SPDX-License-Identifier: BSD-2-Clause
sbin_PROGRAMS += evtgtadm
evtgtadm_SOURCES = tools/evtgtadm.c tools/adm.h tools/call.c tools/convert.c tools/print.c tools/tgtadm.c \
	tools/tgt_admin.c tools/tgt_admin.h tools/tgt_admin_conf.c tools/tgt_admin_daemon.c tools/tgt_admin_lines.c tools/tgt_setup_lun.c tools/tgtimg.c \
	tools/iet.h tools/iet_proc.c tools/ietadm.c tools/ietadm_show.c
# plain verbs
evtgtadm_SOURCES += tools/verb.c tools/verb.h tools/verbs.c tools/verb_access.c tools/verb_complete.c tools/verb_complete_old.c \
	tools/verb_conf.c tools/verb_create.c tools/verb_file.c tools/verb_find.c tools/verb_help.c \
	tools/verb_lun.c tools/verb_out.c tools/verb_parts.h tools/verb_saveall.c \
	tools/verb_secret.c tools/verb_sess.c tools/verb_target.c tools/verb_zram.c tools/zram_kernel.c tools/zram_kernel.h
evtgtadm_LDADD = conf/libconf.a base/libbase.a $(BASE_LIBS)

# Completion of the shells, from the table of verbs.
bashcompdir = $(datadir)/bash-completion/completions
zshcompdir = $(datadir)/zsh/site-functions
fishcompdir = $(datadir)/fish/vendor_completions.d
nodist_bashcomp_DATA = tools/completion/evtgtadm
nodist_zshcomp_DATA = tools/completion/_evtgtadm
nodist_fishcomp_DATA = tools/completion/evtgtadm.fish
CLEANFILES += $(nodist_bashcomp_DATA) $(nodist_zshcomp_DATA) $(nodist_fishcomp_DATA)
tools/completion/evtgtadm: evtgtadm$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) tools/completion && ./evtgtadm completion bash >$@.tmp && mv $@.tmp $@
tools/completion/_evtgtadm: evtgtadm$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) tools/completion && ./evtgtadm completion zsh >$@.tmp && mv $@.tmp $@
tools/completion/evtgtadm.fish: evtgtadm$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) tools/completion && ./evtgtadm completion fish >$@.tmp && mv $@.tmp $@

# The tables of the code for docs/ and for tests/lint/docs.
noinst_PROGRAMS += tools/dump
tools_dump_SOURCES = tools/dump.c
tools_dump_LDADD = target/libtarget.a scsi/libscsi.a backends/libbackends.a base/libbase.a $(BACKENDS_LIBS) $(BASE_LIBS)

# evtgtadm and evtgtd under the names of the programs they stand for, and their pages: only when asked for, since
# tgt may be installed as well.  `make install-compat compatdir=DIR compatmandir=DIR` puts them elsewhere.
compat_programs = tgtadm tgt-admin tgt-setup-lun tgtimg ietadm
compat_pages = tgtadm.8 tgt-admin.8 tgt-setup-lun.8 tgtimg.8 ietadm.8
compat_daemons = tgtd ietd
compatdir = $(sbindir)
compatmandir = $(mandir)/man8
pagesdir = $(pkgdatadir)/man8
dist_pages_DATA = $(compat_pages:%=docs/%)
compat_pages5 = targets.conf.5 ietd.conf.5
compatman5dir = $(compatmandir:%/man8=%/man5)
pages5dir = $(pkgdatadir)/man5
dist_pages5_DATA = $(compat_pages5:%=docs/%)
EXTRA_DIST += tools/compat-links
# their completion: made at the build, kept beside the pages, linked by install-compat
compdir = $(pkgdatadir)/completion
nodist_comp_DATA = $(compat_programs:%=tools/completion/%) $(compat_programs:%=tools/completion/_%) \
	$(compat_programs:%=tools/completion/%.fish)
CLEANFILES += $(nodist_comp_DATA)
$(nodist_comp_DATA): evtgtadm$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) tools/completion && name=$(@F) && \
	case $$name in \
	*.fish) ./evtgtadm completion fish "$${name%.fish}" ;; \
	_*) ./evtgtadm completion zsh "$${name#_}" ;; \
	*) ./evtgtadm completion bash "$$name" ;; \
	esac >$@.tmp && mv $@.tmp $@
compat_comps = $(compat_programs:%=$(bashcompdir)/%=$(compdir)/) \
	$(compat_programs:%=$(zshcompdir)/_%=$(compdir)/) \
	$(compat_programs:%=$(fishcompdir)/%.fish=$(compdir)/)
compat_links = $(compat_comps) $(compat_programs:%=$(compatdir)/%=$(sbindir)/evtgtadm) \
	$(compat_daemons:%=$(compatdir)/%=$(sbindir)/evtgtd) \
	$(compat_daemons:%=$(compatmandir)/%.8=$(mandir)/man8/evtgtd.8) \
	$(compat_pages:%=$(compatmandir)/%=$(pagesdir)/) \
	$(compat_pages5:%=$(compatman5dir)/%=$(pages5dir)/)
install-compat:
	@sh $(srcdir)/tools/compat-links install "$(DESTDIR)" $(compat_links)
uninstall-compat:
	@sh $(srcdir)/tools/compat-links uninstall "$(DESTDIR)" $(compat_links)
.PHONY: install-compat uninstall-compat
