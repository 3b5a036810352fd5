/*
 * Functions that the programs in this directory share. Each program is one rank that uses NCCL's device API, and each
 * rank is a process. Compiles with the headers of 2.28.9 and later.
 */
#include <cuda_runtime.h>
#include <dirent.h>
#include <nccl.h>
#include <nccl_device.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CUDA(call)                                                                                       \
  do {                                                                                                   \
    cudaError_t e = (call);                                                                              \
    if (e != cudaSuccess) {                                                                              \
      fprintf(stderr, "rank %d: %s: %s\n", rank, #call, cudaGetErrorString(e));                          \
      exit(2);                                                                                           \
    }                                                                                                    \
  } while (0)
#define NCCL(call)                                                                                       \
  do {                                                                                                   \
    ncclResult_t r = (call);                                                                             \
    if (r != ncclSuccess) {                                                                              \
      fprintf(stderr, "rank %d: %s: %s (%s)\n", rank, #call, ncclGetErrorString(r), ncclGetLastError(NULL)); \
      exit(3);                                                                                           \
    }                                                                                                    \
  } while (0)

static int rank, ranks;
static cudaStream_t stream;
static ncclComm_t comm;

/* Rank 0 creates the communicator's id, and the other ranks read it. */
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
  for (int tries = 0; tries < 60000; tries++, usleep(1000)) {
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

/*
 * Selects a GPU, and joins the other ranks. CUDA loads a kernel at its first launch, and for that it may wait until all
 * running kernels have ended. Running kernels may in turn wait for copies that cannot start in that time. So this
 * function loads all kernels at once.
 */
static void join(const char *idFile) {
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int devices = 1;
  CUDA(cudaGetDeviceCount(&devices));
  CUDA(cudaSetDevice(rank % devices));
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ncclUniqueId id;
  shareId(idFile, &id);
  NCCL(ncclCommInitRank(&comm, ranks, id, rank));
}

/*
 * Creates a device communicator with a barrier of all ranks. Since 2.29.7 NCCL makes connections for GIN only on
 * request.
 */
static ncclDevComm newDeviceCommunicator(int contexts, int signals, int counters) {
#ifdef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER
  ncclDevCommRequirements requirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
#else
  ncclDevCommRequirements requirements;
  memset(&requirements, 0, sizeof requirements);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 7)
  requirements.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
#endif
  requirements.barrierCount = 1;
  requirements.ginContextCount = contexts;
  requirements.ginSignalCount = signals;
  requirements.ginCounterCount = counters;
  ncclDevComm devComm;
  NCCL(ncclDevCommCreate(comm, &requirements, &devComm));
  return devComm;
}

/*
 * Returns the number of this process's threads with a name prefix. NCCL names its threads if NCCL_SET_THREAD_NAME=1 is
 * set. Linux keeps 15 characters of a name.
 */
static int threadsNamed(const char *prefix) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *task; tasks && (task = readdir(tasks));) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE *f = fopen(path, "r");
    if (f) {
      count += fgets(name, sizeof name, f) && !strncmp(name, prefix, strnlen(prefix, 15));
      fclose(f);
    }
  }
  if (tasks)
    closedir(tasks);
  return count;
}

/*
 * Prints the numbers of threads that serve the kernels' descriptors. The contexts must exist at the time of the call.
 */
static void printThreads(void) {
  const char *named = getenv("NCCL_SET_THREAD_NAME");
  if (named && !strcmp(named, "1"))
    printf("rank %d GIN progress threads of NCCL: %d, of Millrace: %d\n", rank, threadsNamed("NCCL GIN Progress"), threadsNamed("millrace-gin-"));
  else
    printf("rank %d NCCL's threads have no names without NCCL_SET_THREAD_NAME=1\n", rank);
}

/* Barrier of all ranks: ranks of one host use their memory, and hosts use GIN. */
__global__ void barrier(ncclDevComm devComm) {
  ncclGin gin{devComm, 0};
  ncclBarrierSession<ncclCoopCta> session{ncclCoopCta(), ncclTeamTagWorld(), gin, blockIdx.x};
  session.sync(ncclCoopCta(), cuda::memory_order_relaxed, ncclGinFenceLevel::Relaxed);
}

static void run(void) {
  CUDA(cudaGetLastError());
  CUDA(cudaStreamSynchronize(stream));
}
