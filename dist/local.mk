# SPDX-License-Identifier: BSD-2-Clause
EXTRA_DIST += dist/packages dist/install-packages

# systemd looks there below /usr and /usr/local; `make install systemdunitdir=DIR` chooses another.
systemdunitdir = $(prefix)/lib/systemd/system
nodist_systemdunit_DATA = dist/evtgtd.service
EXTRA_DIST += dist/evtgtd.service.in
CLEANFILES += dist/evtgtd.service
dist/evtgtd.service: dist/evtgtd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) dist && \
	sed 's|@sbindir[@]|$(sbindir)|' $(srcdir)/dist/evtgtd.service.in >$@.tmp && mv $@.tmp $@

# systemd-sysusers(8) makes the daemon's user of this.
sysusersdir = $(prefix)/lib/sysusers.d
EXTRA_DIST += dist/evtgt.sysusers

dist_doc_DATA = dist/evtgt.conf.example

# The place of evtgt.conf, for the administrator to fill.
install-data-local:
	$(MKDIR_P) "$(DESTDIR)$(sysconfdir)/evtgt" "$(DESTDIR)$(sysusersdir)"
	$(INSTALL_DATA) $(srcdir)/dist/evtgt.sysusers "$(DESTDIR)$(sysusersdir)/evtgt.conf"
uninstall-local:
	rm -f "$(DESTDIR)$(sysusersdir)/evtgt.conf"
	-test ! -d "$(DESTDIR)$(sysconfdir)/evtgt" || \
		rmdir "$(DESTDIR)$(sysconfdir)/evtgt" 2>/dev/null || :
