# SPDX-License-Identifier: BSD-2-Clause
# Scripted PDUs against the daemon: tests/wire/run --help.
EXTRA_DIST += tests/lib/__init__.py tests/lib/chap.py tests/lib/crc32c.py tests/lib/evtgt.py tests/lib/iscsi.py \
	tests/lib/pdu.py tests/lib/scsi.py tests/wire/harness.py tests/wire/not_applicable.py \
	tests/wire/run tests/wire/test_access.py tests/wire/test_chap.py tests/wire/test_chap_paths.py tests/wire/test_chap_setups.py \
	tests/wire/test_commands.py tests/wire/test_daemon.py tests/wire/test_data.py tests/wire/test_digest.py \
	tests/wire/test_hostile.py tests/wire/test_login.py tests/wire/test_logout.py \
	tests/wire/test_lun_params.py tests/wire/test_nop.py tests/wire/test_numbering.py tests/wire/test_pages.py tests/wire/test_portals.py \
	tests/wire/test_redirect.py tests/wire/test_reject.py \
	tests/wire/test_scsi.py tests/wire/test_session.py tests/wire/test_standins.py \
	tests/wire/test_store.py tests/wire/test_text.py \
	tests/wire/test_tmf.py tests/wire/tshark_check
