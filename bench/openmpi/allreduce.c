/*
 * Times MPI_Allreduce with float sums in the same way as `millrace perf all_reduce` times Millrace. Each size has
 * warm-up operations, then timed operations without a barrier between them, out of place and then in place. The result
 * of one more operation on fresh operands is checked.
 *
 *   mpirun -np N allreduce PLAN
 *
 * PLAN has one line per size: bytes, warm-up operations, timed operations. Rank 0 prints one line per size, with tabs
 * between:
 *
 *   bytes  out-of-place ns  in-place ns  wrong elements
 *
 * A time is the duration of one operation on the slowest rank, averaged over the timed ones. The exit status is 1 if an
 * element was wrong, 2 if a resource was not available.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    long bytes;
    int warmup;
    int iterations;
};

enum { MAX_LINES = 256 };

static int rank;
static int ranks;

static void die(const char *what, const char *which) {
    fprintf(stderr, "allreduce: rank %d: %s %s\n", rank, what, which);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static int read_plan(const char *path, struct line *lines) {
    FILE *file = fopen(path, "r");
    if (!file) {
        die("cannot read the plan", path);
    }
    int count = 0;
    while (count < MAX_LINES && fscanf(file, "%ld %d %d", &lines[count].bytes, &lines[count].warmup, &lines[count].iterations) == 3) {
        struct line *read = &lines[count];
        if (read->bytes < (long) sizeof(float) || read->bytes % (long) sizeof(float) != 0 || read->warmup < 0 || read->iterations < 1) {
            die("a line of the plan is not 'bytes warmup iterations' with bytes a multiple of 4, iterations at least 1:", path);
        }
        count++;
    }
    if (count == 0 || !feof(file)) {
        die("the plan is empty, too long, or has something else than 'bytes warmup iterations' in it:", path);
    }
    fclose(file);
    return count;
}

/* Small integers, with exact sums in any order. */
static float operand(int of, long element) {
    return (float) ((element * 7 + of * 13) % 97);
}

static void fill(float *values, long count) {
    for (long i = 0; i < count; i++) {
        values[i] = operand(rank, i);
    }
}

static long wrong(const float *values, long count) {
    long found = 0;
    for (long i = 0; i < count; i++) {
        float expected = 0;
        for (int r = 0; r < ranks; r++) {
            expected += operand(r, i);
        }
        found += values[i] != expected;
    }
    return found;
}

/* Returns the duration of one operation in nanoseconds. */
static double run(const void *send, float *receive, long count, int operations) {
    double start = MPI_Wtime();
    for (int i = 0; i < operations; i++) {
        MPI_Allreduce(send, receive, (int) count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    return operations == 0 ? 0 : (MPI_Wtime() - start) * 1e9 / operations;
}

static double measure(const struct line *line, float *send, float *receive, int in_place, long *wrongs) {
    long count = line->bytes / (long) sizeof(float);
    float *result = in_place ? send : receive;
    const void *from = in_place ? MPI_IN_PLACE : send;
    memset(send, 0, (size_t) line->bytes); /* sums in place grow with every operation, but zeros stay unchanged */
    run(from, result, count, line->warmup);
    double nanos = run(from, result, count, line->iterations);
    fill(send, count);
    if (!in_place) {
        memset(receive, 0xff, (size_t) line->bytes);
    }
    run(from, result, count, 1);
    *wrongs += wrong(result, count);
    return nanos;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2) {
        die("usage: mpirun -np N allreduce", "PLAN");
    }
    struct line lines[MAX_LINES];
    int count = read_plan(argv[1], lines);
    long largest = 0;
    for (int i = 0; i < count; i++) {
        largest = lines[i].bytes > largest ? lines[i].bytes : largest;
    }
    float *send = aligned_alloc(64, (size_t) (largest + 63) / 64 * 64);
    float *receive = aligned_alloc(64, (size_t) (largest + 63) / 64 * 64);
    if (!send || !receive) {
        die("out of memory for operands of the sizes in", argv[1]);
    }
    memset(receive, 0, (size_t) largest);
    long all_wrong = 0;
    for (int i = 0; i < count; i++) {
        long wrongs = 0;
        double mine[2] = {measure(&lines[i], send, receive, 0, &wrongs), measure(&lines[i], send, receive, 1, &wrongs)};
        double slowest[2];
        long total;
        MPI_Reduce(mine, slowest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Allreduce(&wrongs, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        all_wrong += total;
        if (rank == 0) {
            printf("%ld\t%.1f\t%.1f\t%ld\n", lines[i].bytes, slowest[0], slowest[1], total);
            fflush(stdout);
        }
    }
    free(send);
    free(receive);
    MPI_Finalize();
    return all_wrong == 0 ? 0 : 1;
}
