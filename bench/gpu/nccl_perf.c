/*
 * One rank of a measurement of NCCL. It checks every collective element by element on the host, and times it back to
 * back on one stream. It runs with any libnccl and any plugin. The environment selects the implementation of the
 * network, as in any NCCL program.
 *
 * nccl_perf RANK RANKS ID_FILE COLLECTIVE MIN_BYTES MAX_BYTES ITERATIONS LABEL
 *
 * Rank 0 prints one line per size. At the end every rank prints the CPU seconds of the process, the elapsed seconds,
 * and the CPU seconds of the proxy threads:
 *
 * - LABEL COLLECTIVE BYTES MICROSECONDS GB/s WRONG
 * - LABEL cpu RANK SECONDS_OF_CPU SECONDS, and the CPU seconds of proxy threads
 *
 * SIZES=BYTES,BYTES,... measures only the listed sizes of the range. NCCL_SET_THREAD_NAME=1 names NCCL's threads, so
 * that the program can tell them apart. IDLE=TIMES adds idle periods of one to two seconds at the end, TIMES in number.
 * Each period prints "LABEL idle RANK", the cores that proxy threads used in it, and the microseconds of the all-reduce
 * of 8 B after it.
 */
#define _GNU_SOURCE
#include <cuda_runtime.h>
#include <dirent.h>
#include <nccl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define CUDA(call)                                                                                  \
  do {                                                                                              \
    cudaError_t e = (call);                                                                         \
    if (e != cudaSuccess) {                                                                         \
      fprintf(stderr, "rank %d: %s: %s\n", rank, #call, cudaGetErrorString(e));                     \
      exit(2);                                                                                      \
    }                                                                                               \
  } while (0)
#define NCCL(call)                                                                                  \
  do {                                                                                              \
    ncclResult_t r = (call);                                                                        \
    if (r != ncclSuccess) {                                                                         \
      fprintf(stderr, "rank %d: %s: %s (%s)\n", rank, #call, ncclGetErrorString(r), ncclGetLastError(NULL)); \
      exit(3);                                                                                      \
    }                                                                                               \
  } while (0)

#define WARM_UPS 20000

static int rank, ranks;
static ncclComm_t comm;
static cudaStream_t stream;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static double cpu(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_utime.tv_usec * 1e-6 + u.ru_stime.tv_sec + u.ru_stime.tv_usec * 1e-6;
}

/*
 * CPU seconds of the current threads, grouped by their names: NCCL's proxy with the helpers of its Socket network, the
 * Java proxies, and NCCL's other threads.
 */
enum { NCCL_PROXY, JAVA_PROXY, NCCL_OTHER, GROUPS };
struct threads {
  double seconds[GROUPS];
  int count[GROUPS];
};

static int groupOf(const char *name) {
  if (!strncmp(name, "NCCL Progress", 13) || !strncmp(name, "NCCL Sock", 9))
    return NCCL_PROXY;
  return !strncmp(name, "millrace-proxy", 14) ? JAVA_PROXY : !strncmp(name, "NCCL ", 5) ? NCCL_OTHER : GROUPS;
}

static struct threads threads(void) {
  struct threads sum = {0};
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *task; tasks && (task = readdir(tasks));) {
    char path[300], stat[1024];
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", task->d_name);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(stat, 1, sizeof stat - 1, f) : 0;
    if (f)
      fclose(f);
    stat[n] = 0;
    char *name = strchr(stat, '('), *end = strrchr(stat, ')');
    unsigned long user, system;
    if (!name || !end || sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
      continue; /* not a thread, or a thread that has ended */
    int group = groupOf(name + 1);
    if (group < GROUPS) {
      sum.seconds[group] += (double)(user + system) / sysconf(_SC_CLK_TCK);
      sum.count[group]++;
    }
  }
  if (tasks)
    closedir(tasks);
  return sum;
}

static int wanted(size_t bytes) {
  const char *at = getenv("SIZES");
  for (; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
    if (strtoull(at, NULL, 0) == bytes)
      return 1;
  return !getenv("SIZES");
}

static void shareId(const char *path, ncclUniqueId *id) {
  if (rank == 0) {
    char part[4096];
    snprintf(part, sizeof part, "%s.part", path);
    NCCL(ncclGetUniqueId(id));
    FILE *f = fopen(part, "wb");
    if (!f || fwrite(id, sizeof *id, 1, f) != 1 || fclose(f) || rename(part, path)) {
      perror(path);
      exit(4);
    }
    return;
  }
  for (double end = now() + 60; now() < end; usleep(1000)) {
    FILE *f = fopen(path, "rb");
    if (f) {
      size_t n = fread(id, sizeof *id, 1, f);
      fclose(f);
      if (n == 1)
        return;
    }
  }
  fprintf(stderr, "rank %d: no unique id in %s after 60 s\n", rank, path);
  exit(4);
}

/* The values are small whole numbers, so every sum is exact in float. */
static float value(int ofRank, size_t i) { return (float)((i * 7 + (size_t)ofRank * 13 + i / 1021) % 251); }

enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, SEND_RECV, ALL_TO_ALL, KINDS };
static const char *const names[KINDS] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "sendrecv", "alltoall"};

static size_t sendCount(int kind, size_t n) { return kind == ALL_GATHER ? n / ranks : n; }
static size_t recvCount(int kind, size_t n) { return kind == REDUCE_SCATTER ? n / ranks : n; }

static void launch(int kind, const float *in, float *out, size_t n) {
  size_t part = n / ranks;
  switch (kind) {
    case ALL_REDUCE: NCCL(ncclAllReduce(in, out, n, ncclFloat, ncclSum, comm, stream)); break;
    case ALL_GATHER: NCCL(ncclAllGather(in, out, part, ncclFloat, comm, stream)); break;
    case REDUCE_SCATTER: NCCL(ncclReduceScatter(in, out, part, ncclFloat, ncclSum, comm, stream)); break;
    case BROADCAST: NCCL(ncclBroadcast(in, out, n, ncclFloat, ranks - 1, comm, stream)); break;
    case REDUCE: NCCL(ncclReduce(in, out, n, ncclFloat, ncclSum, 0, comm, stream)); break;
    case SEND_RECV:
      NCCL(ncclGroupStart());
      NCCL(ncclSend(in, n, ncclFloat, (rank + 1) % ranks, comm, stream));
      NCCL(ncclRecv(out, n, ncclFloat, (rank + ranks - 1) % ranks, comm, stream));
      NCCL(ncclGroupEnd());
      break;
    case ALL_TO_ALL:
      NCCL(ncclGroupStart());
      for (int peer = 0; peer < ranks; peer++) {
        NCCL(ncclSend(in + peer * part, part, ncclFloat, peer, comm, stream));
        NCCL(ncclRecv(out + peer * part, part, ncclFloat, peer, comm, stream));
      }
      NCCL(ncclGroupEnd());
      break;
  }
}

static float expected(int kind, size_t i, size_t n) {
  size_t part = n / ranks;
  float sum = 0;
  switch (kind) {
    case ALL_GATHER: return value((int)(i / part), i % part);
    case BROADCAST: return value(ranks - 1, i);
    case SEND_RECV: return value((rank + ranks - 1) % ranks, i);
    case ALL_TO_ALL: return value((int)(i / part), rank * part + i % part);
    case REDUCE_SCATTER: i += rank * part; break;
  }
  for (int r = 0; r < ranks; r++)
    sum += value(r, i);
  return sum;
}

static size_t wrong(int kind, const float *in, float *out, float *host, size_t n) {
  size_t sends = sendCount(kind, n), receives = recvCount(kind, n), bad = 0;
  for (size_t i = 0; i < sends; i++)
    host[i] = value(rank, i);
  CUDA(cudaMemcpy((void *)in, host, sends * 4, cudaMemcpyHostToDevice));
  CUDA(cudaMemset(out, 0xff, receives * 4));
  CUDA(cudaDeviceSynchronize()); /* Neither the copy nor the set is ordered with a non-blocking stream. */
  launch(kind, in, out, n);
  CUDA(cudaStreamSynchronize(stream));
  if (kind == REDUCE && rank != 0)
    return 0;
  CUDA(cudaMemcpy(host, out, receives * 4, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < receives; i++)
    bad += host[i] != expected(kind, i, n);
  return bad;
}

int main(int argc, char **argv) {
  if (argc != 9) {
    fprintf(stderr, "usage: %s RANK RANKS ID_FILE COLLECTIVE|all MIN_BYTES MAX_BYTES ITERATIONS LABEL\n", argv[0]);
    return 1;
  }
  rank = atoi(argv[1]);
  ranks = atoi(argv[2]);
  size_t min = strtoull(argv[5], NULL, 0), max = strtoull(argv[6], NULL, 0);
  int iterations = atoi(argv[7]);
  int devices = 1;
  CUDA(cudaGetDeviceCount(&devices));
  CUDA(cudaSetDevice(rank % devices));
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ncclUniqueId id;
  shareId(argv[3], &id);
  double init = now();
  NCCL(ncclCommInitRank(&comm, ranks, id, rank));
  printf("%-22s init rank %d: %.3f s\n", argv[8], rank, now() - init);
  float *in, *out, *host = malloc(max + 4096);
  size_t *badOf, bad;
  CUDA(cudaMalloc((void **)&in, max + 4096));
  CUDA(cudaMalloc((void **)&out, max + 4096));
  CUDA(cudaMalloc((void **)&badOf, sizeof bad));
  cudaEvent_t begin, end;
  CUDA(cudaEventCreate(&begin));
  CUDA(cudaEventCreate(&end));
  /*
   * Warms up clocks, connections, and the compiler of a proxy in Java. All ranks run the same number of operations,
   * because each operation waits for all ranks.
   */
  CUDA(cudaMemset(in, 0, 4096));
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < WARM_UPS; i++)
    launch(ALL_REDUCE, in, in, i % 2 ? 2 : 1024);
  CUDA(cudaStreamSynchronize(stream));
  struct threads threadsBefore = threads();
  double cpuBefore = cpu(), before = now();
  for (int kind = 0; kind < KINDS; kind++) {
    if (strcmp(argv[4], "all") && strcmp(argv[4], names[kind]))
      continue;
    for (size_t bytes = min; bytes <= max; bytes *= 2) {
      size_t n = bytes / 4 / (kind == ALL_REDUCE || kind == SEND_RECV || kind == BROADCAST || kind == REDUCE ? 1 : ranks);
      n *= kind == ALL_REDUCE || kind == SEND_RECV || kind == BROADCAST || kind == REDUCE ? 1 : ranks;
      if (n == 0 || !wanted(bytes))
        continue;
      bad = wrong(kind, in, out, host, n);
      if (n > 5) /* an odd size as well */
        bad += wrong(kind, in, out, host, (n - 3) / ranks * ranks);
      CUDA(cudaMemcpy(badOf, &bad, sizeof bad, cudaMemcpyHostToDevice));
      CUDA(cudaDeviceSynchronize());
      NCCL(ncclAllReduce(badOf, badOf, 1, ncclUint64, ncclSum, comm, stream));
      CUDA(cudaStreamSynchronize(stream));
      CUDA(cudaMemcpy(&bad, badOf, sizeof bad, cudaMemcpyDeviceToHost));
      int many = bytes <= 65536 ? iterations : bytes <= 4 << 20 ? iterations / 4 + 1 : iterations / 20 + 2;
      float best = 1e30f;
      for (int round = 0; round < 4; round++) { /* The first round is a warm-up. */
        CUDA(cudaEventRecord(begin, stream));
        for (int i = 0; i < many; i++)
          launch(kind, in, kind == ALL_REDUCE ? (float *)in : out, n);
        CUDA(cudaEventRecord(end, stream));
        CUDA(cudaStreamSynchronize(stream));
        float ms;
        CUDA(cudaEventElapsedTime(&ms, begin, end));
        if (round > 0 && ms / many < best)
          best = ms / many;
      }
      if (rank == 0) {
        printf("%-22s %-14s %10zu %10.2f us %8.2f GB/s wrong %zu\n", argv[8], names[kind], bytes, best * 1e3, bytes / best / 1e6, bad);
        fflush(stdout);
      }
    }
  }
  double seconds = now() - before, burnt = cpu() - cpuBefore;
  struct threads after = threads();
  printf("%-22s cpu rank %d: %.2f s of CPU in %.2f s\n", argv[8], rank, burnt, seconds);
  printf("%-22s threads rank %d: nccl_proxy %.2f java_proxy %.2f nccl_other %.2f s in %.2f s; there are %d, %d, %d of them\n", argv[8], rank,
         after.seconds[NCCL_PROXY] - threadsBefore.seconds[NCCL_PROXY], after.seconds[JAVA_PROXY] - threadsBefore.seconds[JAVA_PROXY],
         after.seconds[NCCL_OTHER] - threadsBefore.seconds[NCCL_OTHER], seconds, after.count[NCCL_PROXY], after.count[JAVA_PROXY], after.count[NCCL_OTHER]);
  for (int left = getenv("IDLE") ? atoi(getenv("IDLE")) : 0; left > 0; left--) {
    /*
     * The ranks leave the all-reduce together. They start the next one together, at the second whole second after that,
     * because all ranks read one clock.
     */
    launch(ALL_REDUCE, in, in, 2);
    CUDA(cudaStreamSynchronize(stream));
    double from = now(), until = (uint64_t)from + 2;
    struct threads asleep = threads();
    usleep((until - from) * 1e6 - 2000);
    struct threads awake = threads();
    double slept = now() - from, first;
    while ((first = now()) < until) {
    }
    launch(ALL_REDUCE, in, in, 2);
    CUDA(cudaStreamSynchronize(stream));
    printf("%-22s idle rank %d: nccl_proxy %.4f java_proxy %.4f nccl_other %.4f cores; first %.1f us\n", argv[8], rank,
           (awake.seconds[NCCL_PROXY] - asleep.seconds[NCCL_PROXY]) / slept, (awake.seconds[JAVA_PROXY] - asleep.seconds[JAVA_PROXY]) / slept,
           (awake.seconds[NCCL_OTHER] - asleep.seconds[NCCL_OTHER]) / slept, (now() - first) * 1e6);
  }
  NCCL(ncclCommDestroy(comm));
  return 0;
}
