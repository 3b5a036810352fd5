/*
 * The life of communicators, not their speed: making and destroying them again and again, aborting in mid-transfer, and losing a peer.
 *
 *   nccl_life RANK RANKS ID_FILE cycles N     N communicators one after another, an all-reduce on each, checked
 *   nccl_life RANK RANKS ID_FILE abort        rank 0 aborts while a long all-reduce is under way; all ranks end
 *   nccl_life RANK RANKS ID_FILE kill         the last rank is killed while data moves; the others wait at most 20 s, abort and end
 */
#define _GNU_SOURCE
#include <cuda_runtime.h>
#include <dirent.h>
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

int main(int argc, char **argv) {
  if (argc < 5)
    return 1;
  rank = atoi(argv[1]);
  ranks = atoi(argv[2]);
  const char *mode = argv[4];
  int devices, cycles = argc > 5 ? atoi(argv[5]) : 1;
  CUDA(cudaGetDeviceCount(&devices));
  CUDA(cudaSetDevice(rank % devices));
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  size_t n = !strcmp(mode, "cycles") ? 100003 : 64 << 20;
  float *data, *host = malloc(n * 4);
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
