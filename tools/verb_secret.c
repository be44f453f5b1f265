/* SPDX-License-Identifier: BSD-2-Clause */
/* Passwords for verbs: from a file, generated, or asked for; never from the command line. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/secret.h"
#include "tools/verb.h"

#define ADVISED 12u /* bytes: 96 bits, RFC 7143 9.2.1 */
#define ROOM    (SECRET_MAX + 3)

/* The first line of a stream without its end; false: there is none, or it is too long. */
static bool
first_line(FILE *f, char *line)
{
    if (!fgets(line, ROOM, f))
        return false;
    size_t n = strcspn(line, "\r\n");
    bool whole = line[n] || feof(f);
    line[n] = 0;
    return whole && n <= SECRET_MAX;
}

static void
from_file(struct call *c, const char *path, char *line)
{
    struct stat st;
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(path, "re");

    if (!f)
        verb_fail(c, VERB_NOT_DONE, "password-file", NULL, "cannot read %s: %s", path,
                  strerror(errno));
    setvbuf(f, NULL, _IONBF, 0); /* no copy of it in a buffer that nobody wipes */
    if (!first_line(f, line) || !*line)
        verb_fail(c, VERB_NOT_DONE, "password-file", NULL,
                  "%s: its first line is no password (1 to %u bytes)", path, SECRET_MAX);
    if (!is_stdin && fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077))
        verb_warn(c, "others may read or write %s: chmod 600", path);
    if (!is_stdin)
        (void)fclose(f);
}

/* 16 characters of a 64 letter alphabet: what every initiator takes, 96 bits. */
static void
generate(struct call *c, char *line)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        verb_fail(c, VERB_NOT_DONE, "random", NULL, "the kernel gives no random numbers: %s",
                  strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        line[i] = letters[bytes[i] & 63];
    line[sizeof bytes] = 0;
    secret_wipe(bytes, sizeof bytes);
}

static void
ask(struct call *c, FILE *tty, const char *user, const char *what, char *line)
{
    struct termios was, quiet;

    if (tcgetattr(fileno(tty), &was) < 0)
        verb_fail(c, VERB_NOT_DONE, "terminal", NULL, "the terminal cannot be asked: %s",
                  strerror(errno));
    quiet = was;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    (void)tcsetattr(fileno(tty), TCSAFLUSH, &quiet);
    fprintf(tty, "%s for %s: ", what, user); /* what is typed before it is not taken */
    (void)fflush(tty);
    bool ok = first_line(tty, line);
    (void)tcsetattr(fileno(tty), TCSAFLUSH, &was);
    fputc('\n', tty);
    if (!ok || !*line)
        verb_fail(c, VERB_NOT_DONE, "password", NULL, "a password has 1 to %u bytes", SECRET_MAX);
}

static void
from_terminal(struct call *c, const char *file_opt, const char *user, char *line)
{
    char again[ROOM] = "";
    FILE *tty = isatty(STDIN_FILENO) ? fopen("/dev/tty", "r+e") : NULL;

    if (!tty)
        verb_usage(c,
                   "the password of %s is wanted: --%s FILE, --%s - for standard input, or "
                   "--generate-password",
                   user, file_opt, file_opt);
    setvbuf(tty, NULL, _IONBF, 0);
    ask(c, tty, user, "Password", line);
    ask(c, tty, user, "Once more the password", again);
    bool same = strcmp(line, again) == 0;
    secret_wipe(again, sizeof again);
    (void)fclose(tty);
    if (!same) {
        secret_wipe(line, ROOM);
        verb_fail(c, VERB_NOT_DONE, "password", NULL, "they differ");
    }
}

char *
verb_password(struct call *c, const char *file_opt, const char *user, bool *generated)
{
    const char *path = call_opt(c, file_opt);
    char *line = xcalloc(1, ROOM);

    *generated = !path && call_opt(c, "generate-password");
    if (path && call_opt(c, "generate-password") && strcmp(file_opt, "password-file") == 0)
        verb_usage(c, "--password-file and --generate-password exclude each other");
    if (path)
        from_file(c, path, line);
    else if (*generated)
        generate(c, line);
    else
        from_terminal(c, file_opt, user, line);
    if (strlen(line) < ADVISED)
        verb_warn(c,
                  "the secret of %s has %zu bytes; one of less than %u can be found by trying "
                  "(RFC 7143 9.2.1)",
                  user, strlen(line), ADVISED);
    return line;
}

void
verb_password_done(char *password)
{
    if (password)
        secret_wipe(password, ROOM);
    free(password);
}
