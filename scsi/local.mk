# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += scsi/libscsi.a
scsi_libscsi_a_SOURCES = scsi/scsi.h scsi/priv.h \
	scsi/dispatch.c scsi/ident.c scsi/itn.c scsi/lun.c scsi/lun_map.c scsi/mode.c scsi/mode_table.c scsi/ops.c \
	scsi/sense.c scsi/spc_inquiry.c scsi/spc_misc.c scsi/spc_report_ops.c scsi/spc_vpd.c \
	scsi/task.c scsi/tmf.c scsi/ua.c \
	scsi/sbc.h scsi/sbc_bg.c scsi/sbc_io.c scsi/sbc_misc.c scsi/sbc_rw.c scsi/sbc_unmap.c scsi/sbc_verify.c
scsi_libscsi_a_SOURCES += scsi/lun_share.c scsi/lun_volatile.c
