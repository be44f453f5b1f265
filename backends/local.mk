# SPDX-License-Identifier: BSD-2-Clause
noinst_LIBRARIES += backends/libbackends.a
backends_libbackends_a_SOURCES = backends/backend.c backends/backend.h backends/file.c \
	backends/block.c backends/null.c backends/fdio.c backends/fdio.h backends/fdmap.c backends/fdmap.h \
	backends/layer_error.c backends/layer_delay.c backends/layer_trace.c backends/layer_record.c \
	backends/store.c backends/store_ident.c backends/store_busy.c backends/store.h backends/layer.c backends/layer.h backends/record.h
backends_libbackends_a_SOURCES += backends/store_user.c
backends_libbackends_a_SOURCES += backends/zram_codec.c backends/zram_codec.h backends/zram_store.h \
	backends/zram_alloc.c backends/zram_alloc.h backends/zram_alloc_priv.h backends/zram_compact.c \
	backends/zram_mem.c backends/zram_mem.h backends/zram_priv.h backends/zram_store.c backends/zram_table.c \
	backends/zram_chunk.c backends/zram_io.c backends/zram_step.c
backends_libbackends_a_SOURCES += backends/zram.c
