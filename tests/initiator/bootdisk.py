# SPDX-License-Identifier: BSD-2-Clause
"""The disk that tests/initiator/boot boots from: make(path) writes one image for both firmwares.

BIOS: the boot sector says BOOTED-OVER-ISCSI on the first serial line, reads 32 KiB through INT 13h
and says READ-OK if their sum is right, writes them elsewhere, reads that back and says WRITE-OK if
it is equal, and switches QEMU off through its isa-debug-exit device at port 0xf4.

UEFI: a GPT with a FAT partition whose \\EFI\\BOOT\\BOOTX64.EFI, 1 MiB long, says BOOTED-OVER-ISCSI,
sums itself up, says READ-OK and switches off.

Needs as and ld (binutils), mkfs.vfat (dosfstools), mtools and sfdisk (fdisk)."""

import os
import random
import struct
import subprocess
import tempfile

TOOLS = ("as", "ld", "mkfs.vfat", "mmd", "mcopy", "sfdisk")
MARKS_BIOS = ("BOOTED-OVER-ISCSI", "READ-OK", "WRITE-OK")
MARKS_UEFI = ("BOOTED-OVER-ISCSI", "READ-OK")

DATA, SCRATCH = 40, 1040  # sectors: data to read; where the boot sector writes
ESP, ESP_MIB = 2048, 40   # the FAT partition: first sector, size
DISK_MIB = 48

PRINT = r'''
print:  lodsb                           # si, rsi: text that ends in 0
        test %al, %al
        jz 9f
        mov %al, %ah
        mov $0x3fd, %dx
8:      in %dx, %al                     # wait for the transmitter
        test $0x20, %al
        jz 8b
        mov $0x3f8, %dx
        mov %ah, %al
        out %al, %dx
        jmp print
9:      ret
m_boot: .asciz "\r\nBOOTED-OVER-ISCSI\r\n"
m_read: .asciz "READ-OK\r\n"
m_bad:  .asciz "READ-BAD\r\n"
'''

BIOS = r'''
        .code16
        .globl _start
_start: cli
        ljmp $0, $1f
1:      xor %ax, %ax
        mov %ax, %ds
        mov %ax, %es
        mov %ax, %ss
        mov $0x7000, %sp
        cld
        mov %dl, drive
        mov $m_boot, %si
        call print
        mov $0x42, %ah                  # extended read, to 0x10000
        call disk
        jc bad_r
        mov $0x1000, %ax
        call sum
        cmp $SUM, %dx
        jne bad_r
        mov $m_read, %si
        call print
        movl $WLBA, dap+8
        mov $0x4300, %ax                # extended write, elsewhere
        call disk
        jc bad_w
        movw $0x2000, dap+6             # and read that, to 0x20000
        mov $0x42, %ah
        call disk
        jc bad_w
        mov $0x2000, %ax
        call sum
        cmp $SUM, %dx
        jne bad_w
        mov $m_write, %si
        call print
        mov $0, %al
off:    out %al, $0xf4
        hlt
        jmp off
bad_r:  mov $m_bad, %si
        call print
        mov $1, %al
        jmp off
bad_w:  mov $m_badw, %si
        call print
        mov $2, %al
        jmp off
disk:   mov drive, %dl
        mov $dap, %si
        int $0x13
        ret
sum:    push %ds                        # dx = sum of 16384 words at ax:0, rotated
        mov %ax, %ds
        xor %si, %si
        xor %dx, %dx
        mov $0x4000, %cx
2:      lodsw
        add %ax, %dx
        rol $1, %dx
        loop 2b
        pop %ds
        ret
''' + PRINT + r'''
m_write:.asciz "WRITE-OK\r\n"
m_badw: .asciz "WRITE-BAD\r\n"
drive:  .byte 0
        .balign 4
dap:    .byte 16, 0                     # disk address packet: 64 sectors
        .word 64
        .word 0, 0x1000
        .long RLBA, 0
'''

EFI = r'''
        .code64
        .globl _start
_start: lea m_boot(%rip), %rsi
        call print
        lea data(%rip), %rsi
        mov $WORDS, %ecx
        xor %edx, %edx
        cld
1:      lodsl
        add %eax, %edx
        rol $1, %edx
        dec %ecx
        jnz 1b
        lea m_read(%rip), %rsi
        mov $0, %bl
        cmp $SUM, %edx
        je 2f
        lea m_bad(%rip), %rsi
        mov $1, %bl
2:      call print
        mov %bl, %al
        out %al, $0xf4
3:      hlt
        jmp 3b
''' + PRINT + r'''
        .balign 16
data:
'''


def _run(*cmd, **kw):
    return subprocess.run(cmd, check=True, stdout=subprocess.PIPE, timeout=60, **kw).stdout


def _assemble(tmp, text, base, bits, **symbols):
    """Machine code of `text` as it stands at address `base`."""
    src, obj, out = (os.path.join(tmp, n) for n in ("a.s", "a.o", "a.bin"))
    with open(src, "w") as f:
        f.write(text)
    defs = [x for k, v in symbols.items() for x in ("--defsym", "%s=%d" % (k, v))]
    _run("as", "--%d" % bits, "-o", obj, *defs, src)
    _run("ld", "-m", "elf_i386" if bits == 32 else "elf_x86_64", "-Ttext", hex(base), "--oformat",
         "binary", "-o", out, obj)
    with open(out, "rb") as f:
        return f.read()


def _sum(data, bits):
    n, mask = 0, (1 << bits) - 1
    for (w,) in struct.iter_unpack("<H" if bits == 16 else "<I", data):
        n = (n + w) & mask
        n = (n << 1 | n >> (bits - 1)) & mask
    return n


def _portable_executable(code):
    """A PE32+ image of one section, written out by hand."""
    code += bytes(-len(code) % 512)
    pages = (len(code) + 4095) // 4096 * 4096
    pe = bytearray(b"MZ" + bytes(58) + struct.pack("<I", 64))
    pe += b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, 240, 0x22E)
    pe += struct.pack("<HBBIIIII", 0x20B, 0, 0, len(code), 0, 0, 0x1000, 0x1000)
    pe += struct.pack("<QIIHHHHHHIIIIHHQQQQII", 0x400000, 0x1000, 512, 0, 0, 0, 0, 0, 0, 0,
                      0x1000 + pages, 512, 0, 10, 0, 0, 0, 0, 0, 0, 16)
    pe += bytes(128)  # data directories
    pe += b".text\0\0\0" + struct.pack("<IIIIIIHHI", len(code), 0x1000, len(code), 512, 0, 0, 0, 0,
                                       0xE0000020)
    pe += bytes(512 - len(pe))
    return bytes(pe) + code


def make(path):
    """Writes the image over the file `path`."""
    rnd = random.Random(1)
    data, payload = rnd.randbytes(64 * 512), rnd.randbytes(1 << 20)
    with tempfile.TemporaryDirectory() as tmp:
        boot = _assemble(tmp, BIOS, 0x7C00, 32, SUM=_sum(data, 16), RLBA=DATA, WLBA=SCRATCH)
        assert len(boot) <= 440, "boot sector of %d bytes" % len(boot)
        code = _assemble(tmp, EFI, 0x1000, 64, SUM=_sum(payload, 32), WORDS=len(payload) // 4)
        efi, esp = os.path.join(tmp, "boot.efi"), os.path.join(tmp, "esp")
        with open(efi, "wb") as f:
            f.write(_portable_executable(code + payload))
        with open(esp, "wb") as f:
            f.truncate(ESP_MIB << 20)
        _run("mkfs.vfat", "-F", "32", "-n", "BOOT", esp)
        env = dict(os.environ, MTOOLS_SKIP_CHECK="1")
        _run("mmd", "-i", esp, "::/EFI", "::/EFI/BOOT", env=env)
        _run("mcopy", "-i", esp, efi, "::/EFI/BOOT/BOOTX64.EFI", env=env)
        with open(path, "wb") as f:
            f.truncate(DISK_MIB << 20)
        table = "label: gpt\nstart=%d, size=%dM, type=%s\n" % (
            ESP, ESP_MIB, "C12A7328-F81F-11D2-BA4B-00A0C93EC93B")
        _run("sfdisk", "-q", "--no-reread", "--no-tell-kernel", "--wipe", "always", path,
             input=table.encode())
        with open(path, "r+b") as f, open(esp, "rb") as src:
            f.write(boot)
            f.seek(446)
            f.write(b"\x80")  # some BIOSes want an active partition
            f.seek(DATA * 512)
            f.write(data)
            for at in range(0, ESP_MIB << 20, 1 << 20):
                block = src.read(1 << 20)
                if any(block):
                    f.seek(ESP * 512 + at)
                    f.write(block)
