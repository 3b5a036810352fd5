/*
 * Tests the life of communicators, not their speed: repeated creation and destruction, an abort in mid-transfer, the
 * loss of a peer, and the work after a loss.
 *
 * nccl_life RANK RANKS ID_FILE MODE [ARGUMENTS]
 *
 * - cycles N: creates N communicators one after another, with a checked all-reduce on each.
 * - abort: rank 0 aborts while a long all-reduce runs. All ranks end.
 * - kill: the last rank is killed during a transfer. The other ranks wait at most 5 s, abort and end.
 * - survive N: kills the last rank N times in the middle of all-reduces. Each other rank is one process. It asks NCCL
 * for errors, aborts when NCCL reports one, and joins a new communicator. The last rank is a new process each time:
 * `survive N LOSS`, with LOSS counted from 0.
 * - shrink S: the last rank is killed. The others shrink the communicator and continue in it for S seconds.
 */
#define _GNU_SOURCE
#include <cuda_runtime.h>
#include <dirent.h>
#include <malloc.h>
#include <nccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks;

#define CHECK(call, ok, text)                                                \
  do {                                                                       \
    int r = (int)(call);                                                     \
    if (r != (int)(ok)) {                                                    \
      fprintf(stderr, "rank %d: %s gave %d (%s)\n", rank, #call, r, text);   \
      exit(2);                                                               \
    }                                                                        \
  } while (0)
#define CUDA(call) CHECK(call, cudaSuccess, cudaGetErrorString(cudaGetLastError()))
#define NCCL(call) CHECK(call, ncclSuccess, ncclGetLastError(NULL))

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static int entries(const char *directory) {
  int n = 0;
  DIR *d = opendir(directory);
  while (d && readdir(d))
    n++;
  if (d)
    closedir(d);
  return n;
}

static ncclUniqueId share(const char *file, int cycle) {
  ncclUniqueId id;
  char path[4096], part[4200];
  snprintf(path, sizeof path, "%s.%d", file, cycle);
  snprintf(part, sizeof part, "%s.part", path);
  if (rank == 0) {
    NCCL(ncclGetUniqueId(&id));
    FILE *f = fopen(part, "wb");
    if (!f || fwrite(&id, sizeof id, 1, f) != 1 || fclose(f) || rename(part, path))
      exit(4);
    return id;
  }
  for (double end = now() + 60; now() < end; usleep(500)) {
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(&id, sizeof id, 1, f) : 0;
    if (f)
      fclose(f);
    if (n == 1)
      return id;
  }
  exit(4);
}

#define ELEMENTS (1 << 20)
#define CHECKED_EVERY 8
#define UNTOLD_SECONDS 15

static cudaStream_t stream;
static float *data, *sum, *host, *expected;
/* Name of the latest call that may report an error. After an error, it is the call that reported it. */
static const char *by;

static void prepare(void) {
  CUDA(cudaMalloc((void **)&data, ELEMENTS * sizeof *data));
  CUDA(cudaMalloc((void **)&sum, ELEMENTS * sizeof *sum));
  host = malloc(ELEMENTS * sizeof *host);
  expected = calloc(ELEMENTS, sizeof *expected);
  for (int i = 0; i < ELEMENTS; i++)
    host[i] = (float)((i + rank) % 17);
  CUDA(cudaMemcpy(data, host, ELEMENTS * sizeof *data, cudaMemcpyHostToDevice));
}

/* Computes the sum over ranks 0 to `of` - 1. */
static void expect(int of) {
  for (int i = 0; i < ELEMENTS; i++) {
    expected[i] = 0;
    for (int r = 0; r < of; r++)
      expected[i] += (float)((i + r) % 17);
  }
}

/* Waits for the enqueued operations. Returns NCCL's result, or an error that NCCL reports meanwhile. */
static ncclResult_t await(ncclComm_t comm) {
  ncclResult_t error = ncclSuccess;
  cudaError_t e;
  double begin = now();
  while ((e = cudaStreamQuery(stream)) == cudaErrorNotReady && error == ncclSuccess) {
    NCCL(ncclCommGetAsyncError(comm, &error));
    if (now() - begin > UNTOLD_SECONDS) {
      printf("rank %d: not told within %d s\n", rank, UNTOLD_SECONDS);
      fflush(stdout);
      _exit(6); /* CUDA's exit handlers would wait for the kernel. */
    }
    usleep(100);
  }
  if (error == ncclSuccess)
    CUDA(e);
  return error;
}

/* Runs one all-reduce after the other, up to a given number, or until NCCL reports an error. */
static ncclResult_t reduce(ncclComm_t comm, long most) {
  for (long n = 0; n < most; n++) {
    ncclResult_t error = ncclAllReduce(data, sum, ELEMENTS, ncclFloat, ncclSum, comm, stream);
    by = error == ncclSuccess ? "ncclCommGetAsyncError" : "ncclAllReduce";
    if (error == ncclSuccess)
      error = await(comm);
    if (error != ncclSuccess)
      return error;
    if (n % CHECKED_EVERY)
      continue;
    CUDA(cudaMemcpy(host, sum, ELEMENTS * sizeof *sum, cudaMemcpyDeviceToHost));
    if (memcmp(host, expected, ELEMENTS * sizeof *sum)) {
      printf("rank %d: wrong\n", rank);
      exit(5);
    }
  }
  return ncclSuccess;
}

/* Writes the time to a file for the survivors, and kills this process during a transfer. */
static void die(ncclComm_t comm, const char *file, int loss) {
  char path[4096];
  srand((unsigned)getpid());
  for (int i = 0; i < 20; i++)
    NCCL(ncclAllReduce(data, sum, ELEMENTS, ncclFloat, ncclSum, comm, stream));
  usleep((useconds_t)(rand() % 5000));
  snprintf(path, sizeof path, "%s.%d.killed", file, loss);
  FILE *f = fopen(path, "w");
  fprintf(f, "%.6f\n", now());
  fclose(f);
  raise(SIGKILL);
}

static double since_death(const char *file, int loss) {
  double when = 0, at = now();
  char path[4096];
  snprintf(path, sizeof path, "%s.%d.killed", file, loss);
  FILE *f = fopen(path, "r");
  if (!f || fscanf(f, "%lf", &when) != 1)
    exit(4);
  fclose(f);
  return at - when;
}

/*
 * Prints the open files, threads and memory of this process. Free memory in malloc's arenas does not count. The details
 * are stored in files, for a search of the cause of growth.
 */
static void say_what_is_open(const char *file, const char *when) {
  size_t unused, all;
  long pages = 0, resident = 0;
  char command[4 * 4096];
  usleep(500000); /* Threads that are not joined end in this time. */
  malloc_trim(0);
  snprintf(command, sizeof command, "cat /proc/%d/smaps >'%.3900s.%s.smaps' && ls -l /proc/%d/fd >'%.3900s.%s.fd' && cat /proc/net/tcp >'%.3900s.%s.tcp'",
           (int)getpid(), file, when, (int)getpid(), file, when, file, when);
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld %ld", &pages, &resident) != 2 || system(command))
    exit(4);
  fclose(f);
  CUDA(cudaMemGetInfo(&unused, &all));
  printf("open %s: files %d threads %d resident %ld gpu %ld\n", when, entries("/proc/self/fd"), entries("/proc/self/task"),
         resident * sysconf(_SC_PAGESIZE) >> 20, (long)((all - unused) >> 20));
  fflush(stdout);
}

/* Creates a communicator of this process alone, so that a new process loads NCCL and its libraries before it joins. */
static void warm_up(void) {
  ncclUniqueId id;
  ncclComm_t alone;
  NCCL(ncclGetUniqueId(&id));
  NCCL(ncclCommInitRank(&alone, 1, id, 0));
}

static void survive(const char *file, int losses, int loss) {
  int dies = rank == ranks - 1;
  expect(ranks);
  if (dies)
    warm_up();
  for (; loss <= losses; loss++) {
    ncclComm_t comm;
    ncclUniqueId id = share(file, loss);
    double begin = now();
    NCCL(ncclCommInitRank(&comm, ranks, id, rank));
    double joined = now() - begin;
    if (dies) {
      reduce(comm, loss == losses ? 200 : 30);
      if (loss < losses)
        die(comm, file, loss);
    } else {
      ncclResult_t error = reduce(comm, loss == losses ? 200 : 1 << 30);
      if (loss < losses) {
        double told = since_death(file, loss);
        begin = now();
        NCCL(ncclCommAbort(comm));
        printf("loss %d: joined in %.3f told after %.4f by %s (%d) aborted in %.3f\n", loss, joined, told, by, error, now() - begin);
        fflush(stdout);
        if (loss == 2)
          say_what_is_open(file, "early");
        continue;
      }
    }
    NCCL(ncclCommDestroy(comm));
  }
  if (!dies)
    say_what_is_open(file, "late");
  printf("right %d\n", losses + 1);
}

static void shrink(const char *file, double seconds) {
  int last = ranks - 1;
  ncclComm_t comm, child;
  NCCL(ncclCommInitRank(&comm, ranks, share(file, 0), rank));
  expect(ranks);
  if (rank == last) {
    reduce(comm, 30);
    die(comm, file, 0);
  }
  ncclResult_t error = reduce(comm, 1 << 30);
  double told = since_death(file, 0), begin = now();
  NCCL(ncclCommShrink(comm, &last, 1, &child, NULL, NCCL_SHRINK_ABORT));
  printf("loss 0: joined in 0 told after %.4f by %s (%d) aborted in %.3f\n", told, by, error, now() - begin);
  fflush(stdout);
  expect(ranks - 1);
  begin = now();
  for (float over = 0; over == 0;) { /* All ranks run the same number of operations: rank 0 announces the end. */
    over = now() - begin > seconds;
    NCCL(reduce(child, 64));
    CUDA(cudaMemcpy(sum, &over, sizeof over, cudaMemcpyHostToDevice));
    NCCL(ncclBroadcast(sum, sum, 1, ncclFloat, 0, child, stream));
    NCCL(await(child));
    CUDA(cudaMemcpy(&over, sum, sizeof over, cudaMemcpyDeviceToHost));
  }
  NCCL(ncclCommDestroy(child));
  NCCL(ncclCommAbort(comm));
  printf("right 1\n");
}

int main(int argc, char **argv) {
  if (argc < 5)
    return 1;
  rank = atoi(argv[1]);
  ranks = atoi(argv[2]);
  const char *mode = argv[4];
  int devices, cycles = argc > 5 ? atoi(argv[5]) : 1;
  CUDA(cudaGetDeviceCount(&devices));
  CUDA(cudaSetDevice(rank % devices));
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (!strcmp(mode, "survive") || !strcmp(mode, "shrink")) {
    prepare();
    if (!strcmp(mode, "survive"))
      survive(argv[3], cycles, argc > 6 ? atoi(argv[6]) : 0);
    else
      shrink(argv[3], cycles);
    return 0;
  }
  size_t n = !strcmp(mode, "cycles") ? 100003 : 64 << 20;
  host = malloc(n * 4);
  CUDA(cudaMalloc((void **)&data, n * 4));
  int filesBefore = 0, threadsBefore = 0;
  double begin = now();
  for (int cycle = 0; cycle < cycles; cycle++) {
    ncclComm_t comm;
    NCCL(ncclCommInitRank(&comm, ranks, share(argv[3], cycle), rank));
    for (size_t i = 0; i < n; i++)
      host[i] = (float)((i + rank) % 17);
    CUDA(cudaMemcpy(data, host, n * 4, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
    if (strcmp(mode, "cycles")) {
      for (int i = 0; i < 200; i++)
        NCCL(ncclAllReduce(data, data, n, ncclFloat, ncclSum, comm, stream));
      usleep(300000);
      if (!strcmp(mode, "kill") && rank == ranks - 1)
        raise(SIGKILL);
      double wait = now();
      int byMe = !strcmp(mode, "abort") && rank == 0;
      while (!byMe && cudaStreamQuery(stream) == cudaErrorNotReady && now() - wait < 5)
        usleep(1000);
      double abortBegin = now();
      ncclResult_t r = ncclCommAbort(comm);
      printf("rank %d: abort returned %d after %.2f s\n", rank, r, now() - abortBegin);
      return 0;
    }
    NCCL(ncclAllReduce(data, data, n, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(host, data, n * 4, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; i++) {
      float sum = 0;
      for (int r = 0; r < ranks; r++)
        sum += (float)((i + r) % 17);
      if (host[i] != sum) {
        printf("rank %d: wrong in cycle %d\n", rank, cycle);
        return 5;
      }
    }
    NCCL(ncclCommDestroy(comm));
    if (cycle == 4) {
      filesBefore = entries("/proc/self/fd");
      threadsBefore = entries("/proc/self/task");
    }
  }
  printf("rank %d: %d cycles in %.1f s; open files %d then %d, threads %d then %d\n", rank, cycles, now() - begin, filesBefore,
         entries("/proc/self/fd"), threadsBefore, entries("/proc/self/task"));
  return 0;
}
