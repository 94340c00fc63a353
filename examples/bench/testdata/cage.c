// cage [options] -- COMMAND [ARG...]
//
// Runs COMMAND in a PID namespace and a pids cgroup of its own and times how it ends. Nothing the command starts can leave
// the namespace, and the namespace dies with the cage (PR_SET_PDEATHSIG), so a storm is over when the cage is.
//
//   -i       COMMAND is an ordinary process; the cage's inner half is PID 1 (default: COMMAND is PID 1)
//   -c DIR   COMMAND joins this cgroup, the timer does not
//   -r       ready when COMMAND has written a line
//   -n N     ready when DIR holds N processes
//   -s MS    wait so long after ready, so that the start's own work is over
//   -t       then send SIGTERM; time from there to the reaped status
//   -d MS    COMMAND stops itself MS after its start; time from there (this includes COMMAND's own start)
//   -R       all of it under SCHED_RR, out of reach of what else runs on the machine
//   -z DIR   drain: stop COMMAND, let its orphans in DIR die, continue it; time until DIR holds one process
//
// Prints: elapsed_ns=N status=N left=N      (left: processes that outlived COMMAND, only seen with -i)
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
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static bool inside, want_line, stop, realtime;
static const char *cgroup, *drain;
static int want_procs, settle_ms, deadline_ms;

// The ends of the pipes to COMMAND's stdin and from its stdout.
static int to_cmd = -1, from_cmd = -1;

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_ms(double ms) {
    struct timespec t = {(time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000L};
    nanosleep(&t, NULL);
}

// pids.current counts a zombie until it has been reaped, and costs the same however many there are: what /proc cannot offer.
static int count(const char *dir) {
    char path[512], buf[32] = "";
    snprintf(path, sizeof path, "%s/pids.current", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, buf, sizeof buf - 1) <= 0) err(1, "cannot read %s", path);
    close(fd);
    return atoi(buf);
}

static void join(const char *dir) {
    char path[512];
    snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1) err(125, "cannot join %s", path);
    close(fd);
}

// A fork without glibc's wrapper, which has no flags.
static pid_t fork_into_namespace(void) {
    pid_t pid = syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);
    if (pid < 0) err(1, "cannot make a PID namespace");
    if (pid > 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Private first: else the new /proc would cover the machine's own.
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) err(1, "cannot make mounts private");
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) err(1, "cannot mount /proc");
    return 0;
}

static void become(char **argv, int in[2], int out[2]) {
    bool piped = want_line || drain;
    dup2(piped ? in[0] : open("/dev/null", O_RDONLY), 0);
    if (piped) dup2(out[1], 1);
    if (cgroup) join(cgroup);
    execvp(argv[0], argv);
    err(127, "cannot run %s", argv[0]);
}

static pid_t start(char **argv) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) err(1, "cannot make a pipe");
    pid_t pid = inside ? fork() : fork_into_namespace();
    if (pid < 0) err(1, "cannot fork");
    if (pid == 0) become(argv, in, out);
    close(in[0]), close(out[1]);
    to_cmd = in[1], from_cmd = out[0];
    return pid;
}

static void expect_line(void) {
    char c;
    do {
        if (read(from_cmd, &c, 1) != 1) errx(1, "the command ended before it was ready");
    } while (c != '\n');
}

static void await_ready(void) {
    if (want_line) expect_line();
    // Unbounded on purpose: whoever runs the cage has a time limit for all of it.
    while (want_procs > 0 && count(cgroup) < want_procs) sleep_ms(5);
    if (settle_ms > 0) sleep_ms(settle_ms);
}

// The init is stopped while its orphans die, so that they are all zombies when it goes on: what is timed then is its
// reaping alone, not how fast the load can fork.
static long long drain_orphans(pid_t pid) {
    expect_line();
    if (kill(pid, SIGSTOP) != 0 || waitpid(pid, NULL, WUNTRACED) != pid) err(1, "cannot stop the init");
    if (write(to_cmd, "\n", 1) != 1) err(1, "cannot release the orphans");
    expect_line();
    int zombies = count(drain);
    long long since = now();
    kill(pid, SIGCONT);
    while (count(drain) > 1) sleep_ms(0.1);
    long long took = now() - since;
    fprintf(stderr, "drained %d\n", zombies - 1);
    kill(pid, SIGKILL);
    return took;
}

// As PID 1 whatever outlives COMMAND becomes the cage's child; waiting shows the zombies, the cgroup the living.
static int left_over(void) {
    int left = 0;
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) left++;
    if (pid < 0 && errno == ECHILD) return left;
    return left + (cgroup ? count(cgroup) : 1);
}

static int measure(char **argv) {
    long long since = now();
    pid_t pid = start(argv);
    int status = 0;
    if (drain) {
        long long took = drain_orphans(pid);
        waitpid(pid, &status, 0);
        printf("elapsed_ns=%lld status=%d left=0\n", took, status);
        return 0;
    }
    if (deadline_ms > 0) since += deadline_ms * 1000000LL;
    await_ready();
    if (stop) {
        since = now();
        if (kill(pid, SIGTERM) != 0) err(1, "cannot send SIGTERM");
    }
    if (waitpid(pid, &status, 0) != pid) err(1, "cannot wait");
    long long took = now() - since;
    printf("elapsed_ns=%lld status=%d left=%d\n", took, status, inside ? left_over() : 0);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv) {
    int o;
    while ((o = getopt(argc, argv, "+ic:rn:s:td:Rz:")) != -1) {
        switch (o) {
        case 'i': inside = true; break;
        case 'c': cgroup = optarg; break;
        case 'r': want_line = true; break;
        case 'n': want_procs = atoi(optarg); break;
        case 's': settle_ms = atoi(optarg); break;
        case 't': stop = true; break;
        case 'd': deadline_ms = atoi(optarg); break;
        case 'R': realtime = true; break;
        case 'z': drain = optarg; break;
        default: return 2;
        }
    }
    if (optind == argc || (want_procs > 0 && !cgroup)) errx(2, "usage: cage [options] -- COMMAND [ARG...]");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct sched_param least = {.sched_priority = 1};
    if (realtime && sched_setscheduler(0, SCHED_RR, &least) != 0) err(1, "cannot use SCHED_RR");
    if (!inside) return measure(argv + optind);
    pid_t pid = fork_into_namespace();
    if (pid == 0) _exit(measure(argv + optind));
    int status;
    if (waitpid(pid, &status, 0) != pid) err(1, "cannot wait");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
