dist_man_MANS += docs/evtgt.conf.5 docs/evtgtadm.8 docs/evtgtd.8
EXTRA_DIST += docs/admin-protocol.md docs/design.md
