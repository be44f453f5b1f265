# SPDX-License-Identifier: BSD-2-Clause
dist_man_MANS += docs/evtgt.conf.5 docs/evtgtadm.8 docs/evtgtd.8
EXTRA_DIST += docs/performance.md docs/admin-protocol.md docs/design.md docs/keys.md docs/opcodes.md docs/zram.md

# Pages that are the tables of the code; tests/lint/docs fails when they are not current.
docs: tools/dump
	tools/dump opcodes > $(srcdir)/docs/opcodes.md
	tools/dump keys > $(srcdir)/docs/keys.md
.PHONY: docs
