noinst_LIBRARIES += scsi/libscsi.a
scsi_libscsi_a_SOURCES = scsi/scsi.h
