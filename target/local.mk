sbin_PROGRAMS += evtgtd
noinst_LIBRARIES += target/libtarget.a
target_libtarget_a_SOURCES = target/target.h
evtgtd_SOURCES = target/main.c
evtgtd_LDADD = target/libtarget.a conf/libconf.a scsi/libscsi.a backends/libbackends.a \
	base/libbase.a $(BASE_LIBS)
