/*
 * Round trips and all-reduces of Open MPI. JvmRank.java does the same in Java, and its comment describes the output.
 *
 *   mpirun -np N mpi LATER
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_TRIP = 64 << 10, LARGEST_SUM = 64 << 20, CHECKS = 2, OPERATIONS = 8 };

struct timed {
    int trip;
    int bytes;
};

static const struct timed operations[OPERATIONS] = {{1, 64}, {1, LARGEST_TRIP}, {0, 8}, {0, 1 << 10}, {0, 64 << 10}, {0, 1 << 20}, {0, 8 << 20}, {0, LARGEST_SUM}};
static const double seconds = 0.3;
static const double longest_batch = 0.01;

static int rank;
static int ranks;
static float *sent;
static float *received;

static void once(int trip, int bytes) {
    int count = bytes / (int) sizeof(float);
    if (!trip) {
        MPI_Allreduce(sent, received, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Send(sent, count, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(received, count, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(received, count, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(sent, count, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
    }
}

/* Returns the number that rank 0 passes, on every rank. */
static int agree(int number) {
    sent[0] = rank == 0 ? (float) number : 0;
    once(ranks == 2, ranks == 2 ? 64 : 8);
    sent[0] = 0;
    return ranks == 2 && rank == 0 ? number : (int) received[0];
}

/* Returns the microseconds of an operation, averaged over the operations until the time has passed on rank 0. */
static double run(struct timed timed) {
    double end = MPI_Wtime() + seconds;
    double taken = 0;
    long count = 0;
    int batch = 1;
    while ((batch = agree(batch)) > 0) {
        double start = MPI_Wtime();
        for (int i = 0; i < batch; i++) {
            once(timed.trip, timed.bytes);
        }
        double now = MPI_Wtime();
        taken += now - start;
        count += batch;
        batch = now >= end ? 0 : now - start < longest_batch ? 2 * batch : batch;
    }
    return taken * 1e6 / (double) count;
}

static void pass(double *micros) {
    for (int i = ranks == 2 ? 0 : 2; i < OPERATIONS; i++) {
        micros[i] = run(operations[i]);
    }
}

/* Small integers, with exact sums in any order. */
static float value(int of, long element, int seed) {
    return (float) ((element * 7 + of * 13 + seed * 29 + 1) % 97);
}

static long check(struct timed timed, int seed) {
    long count = timed.bytes / (long) sizeof(float);
    long wrong = 0;
    memset(received, 0xff, LARGEST_SUM);
    for (long i = 0; i < count; i++) {
        sent[i] = value(rank, i, seed);
    }
    once(timed.trip, timed.bytes);
    for (long i = 0; i < count; i++) {
        float expected = timed.trip ? value(1 - rank, i, seed) : 0;
        for (int other = 0; !timed.trip && other < ranks; other++) {
            expected += value(other, i, seed);
        }
        wrong += received[i] != expected;
    }
    return wrong;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    sent = aligned_alloc(64, LARGEST_SUM);
    received = aligned_alloc(64, LARGEST_SUM);
    if (argc != 2 || ranks < 2 || !sent || !received) {
        fprintf(stderr, "usage: mpirun -np N mpi LATER, with N of 2 or more and 128 MiB of memory for each rank\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(sent, 0, LARGEST_SUM);
    memset(received, 0, LARGEST_SUM);
    double fresh[OPERATIONS];
    double steady[OPERATIONS];
    double later = MPI_Wtime() + strtod(argv[1], NULL);
    pass(fresh);
    while (agree(MPI_Wtime() < later) > 0) {
        pass(steady);
    }
    pass(steady);
    long checked = 0;
    long wrong = 0;
    for (int i = ranks == 2 ? 0 : 2; i < OPERATIONS; i++) {
        for (int seed = 0; seed < CHECKS; seed++) {
            wrong += check(operations[i], seed);
            checked += operations[i].bytes;
        }
        if (rank == 0) {
            printf("time\t%s\t%d\t%.3f\t%.3f\n", operations[i].trip ? "trip" : "sum", operations[i].bytes, fresh[i], steady[i]);
        }
    }
    printf("checked\t%ld\t%ld\n", checked, wrong);
    fflush(stdout);
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
