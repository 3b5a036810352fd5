/*
 * Cost of ranks that share cores with Open MPI. Ranks.java does the same with Millrace, and its comment describes the output.
 *
 *   START=<ns since 1970> mpirun -np N ranks LATER
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGE = 1 << 20 };

static float *send;
static float *receive;

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

/* Returns the microseconds of an operation, averaged over operations until the given time has passed on any rank. */
static double run(int bytes, int batch, double time) {
    double end = seconds(CLOCK_MONOTONIC) + time;
    double taken = 0;
    long operations = 0;
    int over;
    do {
        double start = seconds(CLOCK_MONOTONIC);
        for (int i = 0; i < batch; i++) {
            MPI_Allreduce(send, receive, bytes / (int) sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        }
        double now = seconds(CLOCK_MONOTONIC);
        taken += now - start;
        operations += batch;
        over = now >= end;
        MPI_Allreduce(MPI_IN_PLACE, &over, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    } while (!over);
    return taken * 1e6 / (double) operations;
}

static long status(const char *path, const char *name) {
    FILE *file = fopen(path, "r");
    char line[256];
    long value = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) == 0) {
            value = strtol(line + strlen(name), NULL, 10);
        }
    }
    if (file) {
        fclose(file);
    }
    return value;
}

int main(int argc, char **argv) {
    const char *start = getenv("START");
    if (argc != 2 || !start) {
        fprintf(stderr, "usage: START=<ns since 1970> mpirun -np N ranks LATER\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    double joined = seconds(CLOCK_REALTIME) - strtod(start, NULL) / 1e9;
    double later = seconds(CLOCK_MONOTONIC) + strtod(argv[1], NULL);
    send = malloc(LARGE);
    receive = malloc(LARGE);
    if (!send || !receive) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(send, 1, LARGE);
    memset(receive, 1, LARGE);
    double fresh = run(8, 100, 1);
    double freshLarge = run(LARGE, 5, 1);
    run(8, 100, later - seconds(CLOCK_MONOTONIC));
    double small = run(8, 100, 1);
    double waited = run(8, 100, 1);
    double large = run(LARGE, 5, 1);
    printf("rank\t%.3f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%ld\t%.0f\t%.0f\n", joined, fresh, freshLarge, small, waited, large,
           status("/proc/self/status", "Threads:"), (double) status("/proc/self/status", "VmRSS:") / 1e3,
           (double) status("/proc/self/smaps_rollup", "Pss:") / 1e3);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
