// spawn [-R] ROUNDS CMD [ARG...] [:: CMD [ARG...]]...
//
// Times each command from posix_spawn to its reaped status, all of them once a round, and prints one line of nanoseconds a
// round. posix_spawn because vfork semantics make the caller's own size irrelevant: each command pays the same for being
// started. -R: all under SCHED_RR, out of reach of what else runs on the machine. The order turns by one each round, so that no command always runs in the cache another has warmed.
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAXCMD = 16, MAXARG = 16, WARMUP = 5 };

extern char **environ;
static char *cmds[MAXCMD][MAXARG];
static posix_spawn_file_actions_t quiet;

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int parse(char **argv) {
    int k = 0, j = 0;
    for (; *argv; argv++) {
        if (strcmp(*argv, "::") == 0) {
            k++, j = 0;
        } else {
            cmds[k][j++] = *argv;
        }
        if (k >= MAXCMD || j >= MAXARG) errx(2, "too many commands or arguments");
    }
    return k + 1;
}

static long long run(char **cmd) {
    long long start = now();
    pid_t pid;
    int status, e = posix_spawn(&pid, cmd[0], &quiet, NULL, cmd, environ);
    if (e != 0) errx(1, "cannot start %s: %s", cmd[0], strerror(e));
    if (waitpid(pid, &status, 0) != pid) err(1, "cannot wait for %s", cmd[0]);
    long long took = now() - start;
    // A command that failed has not done the work that is being timed.
    if (status != 0) errx(1, "%s ended with wait status 0x%x", cmd[0], status);
    return took;
}

int main(int argc, char **argv) {
    struct sched_param least = {.sched_priority = 1};
    if (argc > 1 && strcmp(argv[1], "-R") == 0) {
        if (sched_setscheduler(0, SCHED_RR, &least) != 0) err(1, "cannot use SCHED_RR");
        argc--, argv++;
    }
    if (argc < 3) errx(2, "usage: spawn [-R] ROUNDS CMD [ARG...] [:: CMD [ARG...]]...");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int n = atoi(argv[1]), k = parse(argv + 2);
    long long *t = calloc((size_t)n * k, sizeof *t);
    if (t == NULL) err(1, "cannot allocate");
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);

    for (int r = -WARMUP; r < n; r++) {
        for (int i = 0; i < k; i++) {
            int c = (i + r + WARMUP) % k;
            long long took = run(cmds[c]);
            if (r >= 0) t[(size_t)r * k + c] = took;
        }
    }
    for (int r = 0; r < n; r++) {
        for (int c = 0; c < k; c++) printf("%lld%c", t[(size_t)r * k + c], c + 1 < k ? ' ' : '\n');
    }
    return 0;
}
