# SPDX-License-Identifier: BSD-2-Clause
# evtgtadm and the admin socket against the daemon: tests/admin/run --help.
EXTRA_DIST += tests/admin/common.py tests/admin/compat.py tests/admin/run
EXTRA_DIST += tests/admin/test_access_files.py
EXTRA_DIST += tests/admin/test_accounts.py
EXTRA_DIST += tests/admin/test_busy.py
EXTRA_DIST += tests/admin/test_calls.py
EXTRA_DIST += tests/admin/test_compare.py
EXTRA_DIST += tests/admin/test_compat.py
EXTRA_DIST += tests/admin/convert/saveconfig.json
EXTRA_DIST += tests/admin/test_convert.py
EXTRA_DIST += tests/admin/conf_tool.py tests/admin/test_config.py
EXTRA_DIST += tests/admin/test_daemon.py
EXTRA_DIST += tests/admin/test_ids.py
EXTRA_DIST += tests/admin/test_ietadm.py
EXTRA_DIST += tests/admin/test_install_compat.py
EXTRA_DIST += tests/admin/test_manuals.py
EXTRA_DIST += tests/admin/test_privileges.py
EXTRA_DIST += tests/admin/test_integrations.py
EXTRA_DIST += tests/admin/test_protocol.py
EXTRA_DIST += tests/admin/test_setup_lun.py
EXTRA_DIST += tests/admin/test_stat.py
EXTRA_DIST += tests/admin/test_tgt_admin.py
EXTRA_DIST += tests/admin/test_tgt_admin_conf.py
EXTRA_DIST += tests/admin/test_tgtimg.py
EXTRA_DIST += tests/admin/verbs.py
EXTRA_DIST += tests/admin/live/__init__.py tests/admin/live/moves.py tests/admin/live/parse.py \
	tests/admin/live/race.py tests/admin/live/run
EXTRA_DIST += tests/admin/test_completion.py
EXTRA_DIST += tests/admin/test_saveall.py
EXTRA_DIST += tests/admin/test_saved.py
EXTRA_DIST += tests/admin/test_verbs.py
EXTRA_DIST += tests/admin/test_verbs_create.py
