# SPDX-License-Identifier: BSD-2-Clause
# Scripted PDUs against the daemon: tests/wire/run --help.
EXTRA_DIST += tests/lib/__init__.py tests/lib/crc32c.py tests/lib/evtgt.py tests/lib/iscsi.py \
	tests/lib/pdu.py tests/lib/scsi.py tests/wire/harness.py tests/wire/not_applicable.py \
	tests/wire/run tests/wire/tshark_check
