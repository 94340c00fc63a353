// load ROLE ...: the commands that the inits under test are given. Every role ends by itself after LIFETIME seconds.
//
//   sleepers N direct|orphans|plain   N `sleep` processes, each in a session of its own, then the line "ready"
//                                     (direct: the caller's children; orphans: double-forked; plain: no exec)
//   loop N direct|plain               the yardstick: the same sleepers, and on SIGTERM nothing but kill and wait
//   orphans N DIR                     N orphans as fast as they can be forked, in cgroup DIR, until all have been reaped
//   drain N DIR                       N orphans that die together, on a byte from stdin
//   storm                             every process forks for ever, each child in its own session
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIFETIME = 60, BROOD = 50 };

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void say(const char *line) {
    if (write(1, line, strlen(line)) < 0) _exit(1);
}

// A full cgroup is what the loads run into on purpose: there, wait for a free slot.
static pid_t fork_patiently(void) {
    for (;;) {
        pid_t pid = fork();
        if (pid >= 0 || errno != EAGAIN) return pid;
        usleep(50);
    }
}

static void join(const char *dir) {
    char path[512];
    snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, "0", 1) != 1) err(1, "cannot join %s", path);
    close(fd);
}

static int count(const char *dir) {
    char path[512], buf[32] = "";
    snprintf(path, sizeof path, "%s/pids.current", dir);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, buf, sizeof buf - 1) <= 0) err(1, "cannot read %s", path);
    close(fd);
    return atoi(buf);
}

static void sleeper(bool plain) {
    setsid();
    close(0), close(1);
    if (plain) {
        sleep(LIFETIME);
        _exit(0);
    }
    execlp("sleep", "sleep", "60", (char *)NULL);
    _exit(127);
}

// Starts n sleepers and returns when each has its session (and its program): alive is open in nobody after that. plain ones
// keep it until they close it by hand, after setsid.
static void start_sleepers(int n, pid_t *pids, bool plain) {
    int alive[2];
    if (pipe2(alive, O_CLOEXEC) != 0) err(1, "cannot make a pipe");
    for (int i = 0; i < n; i++) {
        pid_t pid = fork_patiently();
        if (pid < 0) err(1, "cannot fork");
        if (pid == 0) {
            if (plain) setsid(), close(alive[0]), close(alive[1]);
            sleeper(plain);
        }
        if (pids) pids[i] = pid;
    }
    close(alive[1]);
    char c;
    while (read(alive[0], &c, 1) > 0) continue;
    close(alive[0]);
}

static int sleepers(int n, const char *shape) {
    bool plain = strcmp(shape, "plain") == 0;
    if (strcmp(shape, "orphans") == 0) {
        pid_t middle = fork();
        if (middle == 0) {
            start_sleepers(n, NULL, plain);
            _exit(0);
        }
        waitpid(middle, NULL, 0);
    } else {
        start_sleepers(n, NULL, plain);
    }
    say("ready\n");
    sleep(LIFETIME);
    return 0;
}

static int loop(int n, const char *shape) {
    pid_t *pids = calloc(n, sizeof *pids);
    sigset_t term;
    int sig;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start_sleepers(n, pids, strcmp(shape, "plain") == 0);
    sigemptyset(&term), sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    say("ready\n");
    sigwait(&term, &sig);
    for (int i = 0; i < n; i++) kill(pids[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0) continue;
    return errno == ECHILD ? 0 : 1;
}

// One middle process bears a brood and ends, which orphans it: 1.02 forks for each orphan, so the init has little rest.
static int orphans(int n, const char *dir) {
    join(dir);
    long long since = now();
    for (int done = 0; done < n; done += BROOD) {
        pid_t middle = fork_patiently();
        if (middle == 0) {
            for (int i = 0; i < BROOD; i++) {
                if (fork_patiently() == 0) _exit(0);
            }
            _exit(0);
        }
        if (middle < 0 || waitpid(middle, NULL, 0) != middle) err(1, "cannot run the middle process");
    }
    while (count(dir) > 1) usleep(100);
    printf("elapsed_ns=%lld\n", now() - since);
    return 0;
}

static void die_when_released(int release[2], int alive[2]) {
    char c;
    close(release[1]), close(alive[0]);
    close(0), close(1);
    alarm(LIFETIME);
    if (read(release[0], &c, 1) < 0) _exit(1);
    _exit(0);
}

static int drain(int n, const char *dir) {
    int release[2], alive[2];
    char c;
    if (pipe(release) != 0 || pipe(alive) != 0) err(1, "cannot make a pipe");
    join(dir);
    pid_t middle = fork();
    if (middle == 0) {
        // Out of the main process's group: an init that forwards the SIGCONT it gets would send it to each of the dead.
        setsid();
        for (int i = 0; i < n; i++) {
            pid_t pid = fork();
            if (pid == 0) die_when_released(release, alive);
            if (pid < 0) err(1, "cannot fork an orphan");
        }
        _exit(0);
    }
    int status;
    if (waitpid(middle, &status, 0) != middle || status != 0) errx(1, "cannot make the orphans");
    say("ready\n");
    if (read(0, &c, 1) != 1) return 1;
    close(release[1]), close(alive[1]);
    while (read(alive[0], &c, 1) > 0) continue;
    usleep(200000);  // a process closes its files a moment before it is a zombie
    say("dead\n");
    sleep(LIFETIME);
    return 0;
}

// The end of time is inherited by each fork, so a storm that nobody stops is over after LIFETIME all the same.
static int storm(void) {
    long long end = now() + LIFETIME * 1000000000LL;
    signal(SIGCHLD, SIG_IGN);
    close(0), close(1);
    while (now() < end) {
        if (fork() == 0) setsid();
    }
    return 0;
}

int main(int argc, char **argv) {
    const char *role = argc > 1 ? argv[1] : "";
    int n = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(role, "storm") == 0) return storm();
    if (argc != 4 || n < 1) errx(2, "usage: load ROLE N SHAPE|DIR");
    if (strcmp(role, "sleepers") == 0) return sleepers(n, argv[3]);
    if (strcmp(role, "loop") == 0) return loop(n, argv[3]);
    if (strcmp(role, "orphans") == 0) return orphans(n, argv[3]);
    if (strcmp(role, "drain") == 0) return drain(n, argv[3]);
    errx(2, "unknown role %s", role);
}
