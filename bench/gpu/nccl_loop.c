/*
 * One rank of an endless job for kills.sh. It runs collectives of every kind and of many sizes, one after another.
 * Between them it asks NCCL for errors, as PyTorch's watchdog does.
 *
 * nccl_loop RANK RANKS ID_FILE STOP_FILE
 *
 * The job runs until STOP_FILE exists. It prints "ready" once the communicator works, and "at N" from time to time.
 * When NCCL reports an error, it prints "told: ..." and ends with status 3. At the end it prints "done N".
 */
#define _GNU_SOURCE
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MOST (1 << 22)

static int rank, ranks;
static ncclComm_t comm;
static cudaStream_t stream;

static void told(ncclResult_t result) {
  printf("told: %s: %s\n", ncclGetErrorString(result), ncclGetLastError(comm));
  fflush(stdout);
  ncclCommAbort(comm);
  exit(3);
}

#define CUDA(call)                                                              \
  do {                                                                          \
    cudaError_t e = (call);                                                     \
    if (e != cudaSuccess) {                                                     \
      fprintf(stderr, "rank %d: %s: %s\n", rank, #call, cudaGetErrorString(e)); \
      exit(2);                                                                  \
    }                                                                           \
  } while (0)
#define NCCL(call)            \
  do {                        \
    ncclResult_t r = (call);  \
    if (r != ncclSuccess)     \
      told(r);                \
  } while (0)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void synchronize(void) {
  cudaError_t e;
  while ((e = cudaStreamQuery(stream)) == cudaErrorNotReady) {
    ncclResult_t error;
    NCCL(ncclCommGetAsyncError(comm, &error));
    if (error != ncclSuccess)
      told(error);
    usleep(100);
  }
  CUDA(e);
}

int main(int argc, char **argv) {
  if (argc != 5)
    return 1;
  rank = atoi(argv[1]);
  ranks = atoi(argv[2]);
  int devices;
  CUDA(cudaGetDeviceCount(&devices));
  CUDA(cudaSetDevice(rank % devices));
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ncclUniqueId id;
  char part[4096];
  snprintf(part, sizeof part, "%s.part", argv[3]);
  if (rank == 0) {
    NCCL(ncclGetUniqueId(&id));
    FILE *f = fopen(part, "wb");
    if (!f || fwrite(&id, sizeof id, 1, f) != 1 || fclose(f) || rename(part, argv[3]))
      return 4;
  } else {
    FILE *f = NULL;
    for (double end = now() + 60; !(f = fopen(argv[3], "rb")) && now() < end;)
      usleep(1000);
    if (!f || fread(&id, sizeof id, 1, f) != 1)
      return 4;
    fclose(f);
  }
  NCCL(ncclCommInitRank(&comm, ranks, id, rank));
  float *data, *out, flag = 0;
  CUDA(cudaMalloc((void **)&data, MOST * sizeof(float)));
  CUDA(cudaMalloc((void **)&out, MOST * sizeof(float)));
  CUDA(cudaMemset(data, 0, MOST * sizeof(float)));
  unsigned random = 1; /* the same on all ranks */
  double last = 0;
  for (long n = 1;; n++) {
    size_t count = (size_t)ranks << rand_r(&random) % 18;
    int root = rand_r(&random) % ranks;
    switch (rand_r(&random) % 6) {
      case 0: NCCL(ncclBroadcast(data, out, count, ncclFloat, root, comm, stream)); break;
      case 1: NCCL(ncclAllGather(data, out, count / ranks, ncclFloat, comm, stream)); break;
      case 2: /* down a pipeline: the last rank only receives */
        NCCL(ncclGroupStart());
        if (rank + 1 < ranks)
          NCCL(ncclSend(data, count, ncclFloat, rank + 1, comm, stream));
        if (rank > 0)
          NCCL(ncclRecv(out, count, ncclFloat, rank - 1, comm, stream));
        NCCL(ncclGroupEnd());
        break;
      default: NCCL(ncclAllReduce(data, out, count, ncclFloat, ncclSum, comm, stream));
    }
    if (n % 16 == 0)
      synchronize();
    if (n % 256 == 0) {
      float ends = access(argv[4], F_OK) == 0;
      CUDA(cudaMemcpy(data, &ends, sizeof ends, cudaMemcpyHostToDevice));
      CUDA(cudaDeviceSynchronize());
      NCCL(ncclAllReduce(data, data, 1, ncclFloat, ncclMax, comm, stream));
      synchronize();
      CUDA(cudaMemcpy(&flag, data, sizeof flag, cudaMemcpyDeviceToHost));
      if (n == 256)
        puts("ready");
      if (now() - last > 0.5) {
        printf("at %ld\n", n);
        last = now();
      }
      fflush(stdout);
      if (flag > 0) {
        NCCL(ncclCommDestroy(comm));
        printf("done %ld\n", n);
        return 0;
      }
    }
  }
}
