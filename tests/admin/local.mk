# SPDX-License-Identifier: BSD-2-Clause
# evtgtadm and the admin socket against the daemon: tests/admin/run --help.
EXTRA_DIST += tests/admin/common.py tests/admin/compat.py tests/admin/run tests/admin/test_compat.py \
	tests/admin/test_accounts.py tests/admin/test_calls.py \
	tests/admin/test_compare.py tests/admin/test_daemon.py tests/admin/test_ids.py \
	tests/admin/test_protocol.py
