/*
 * One rank of a check that the program makes progress while kernels wait for GIN. In every round, kernels block eight
 * streams. Each kernel waits for a put and compares the bytes that it delivered.
 *
 * nccl_blocked RANK RANKS ID_FILE ROUNDS HOW
 *
 * HOW is one of:
 *
 * - memory: another thread of the program allocates and frees memory at the same time. The kernel that puts is launched
 * before the kernels that wait. The reason is that cudaFree waits for the waiting kernels, and no thread launches
 * anything until cudaFree returns.
 * - waiting: the kernels that wait are launched first.
 * - capture: as waiting, while a stream captures in global mode. Forbidden calls from any thread would invalidate this
 * capture.
 * - reset: as memory, with cudaDeviceReset in the middle of the last round.
 * - exit: as memory, with exit in the middle of the last round.
 */
#include "gin_setting.cuh"
#include <atomic>
#include <chrono>
#include <thread>

#define STREAMS 8
#define PIECE 65536
static const size_t PIECES[] = {8, 24, 1024, 7168, 7168, 40000, 4, PIECE};

__device__ inline int other(const ncclDevComm &devComm) { return (devComm.rank + 1) % devComm.nRanks; }

/* One block for each stream: writes the bytes of this round, and puts them. */
__global__ void puts(ncclDevComm devComm, int contexts, ncclWindow_t to, ncclWindow_t from, uint8_t *in, const size_t *pieces, int round) {
  size_t at = (size_t)blockIdx.x * PIECE, bytes = pieces[blockIdx.x];
  for (size_t i = threadIdx.x; i < bytes; i += blockDim.x)
    in[at + i] = pattern(devComm.rank, blockIdx.x, round, i);
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) {
    ncclGin gin{devComm, (int)blockIdx.x % contexts};
    gin.put(ncclTeamWorld(devComm), other(devComm), to, at, from, at, bytes, ncclGin_SignalInc{1 + blockIdx.x});
  }
}

__global__ void waits(ncclDevComm devComm, int contexts, int number, const uint8_t *out, size_t bytes, int round, uint64_t *wrong, uint32_t *ended) {
  ncclGin gin{devComm, number % contexts};
  if (threadIdx.x == 0)
    gin.waitSignal(ncclCoopThread(), 1 + number, round + 1);
  __syncthreads();
  compare(out + (size_t)number * PIECE, other(devComm), number, round, bytes, wrong);
  __syncthreads();
  if (threadIdx.x == 0)
    atomicAdd_system(ended, 1);
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: %s RANK RANKS ID_FILE ROUNDS memory|waiting|capture|reset|exit\n", argv[0]);
    return 1;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  rank = atoi(argv[1]);
  ranks = atoi(argv[2]);
  int rounds = atoi(argv[4]);
  const char *how = argv[5];
  bool capture = !strcmp(how, "capture"), putsFirst = !capture && strcmp(how, "waiting");
  join(argv[3]);
  Setting s = newSetting((size_t)STREAMS * PIECE, 0, 1);
  cudaStream_t streams[STREAMS], captured;
  for (int i = 0; i < STREAMS; i++)
    CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
  uint32_t *ended, *seen;
  CUDA(cudaHostAlloc((void **)&ended, sizeof *ended, cudaHostAllocMapped));
  *ended = 0;
  CUDA(cudaHostGetDevicePointer((void **)&seen, ended, 0));
  size_t *pieces;
  CUDA(cudaMalloc((void **)&pieces, sizeof PIECES));
  CUDA(cudaMemcpy(pieces, PIECES, sizeof PIECES, cudaMemcpyHostToDevice));
  CUDA(cudaMemset(s.found, 0, FINDINGS * sizeof *s.found));
  CUDA(cudaDeviceSynchronize());
  everybody(s);
  run();
  std::atomic<bool> over{false};
  std::atomic<long> taken{0};
  int device;
  CUDA(cudaGetDevice(&device));
  std::thread memory([&] {
    CUDA(cudaSetDevice(device));
    for (size_t bytes = 4096; !over && putsFirst; bytes = bytes < (64 << 20) ? bytes * 3 : 4096) {
      void *some, *pinned;
      CUDA(cudaMalloc(&some, bytes));
      CUDA(cudaMallocHost(&pinned, 4096));
      CUDA(cudaFree(some));
      CUDA(cudaFreeHost(pinned));
      taken++;
    }
  });
  auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < rounds; round++) {
    if (capture)
      CUDA(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
    for (int turn = 0; turn < 2; turn++)
      if ((turn == 0) == putsFirst) {
        puts<<<STREAMS, 256, 0, stream>>>(s.devComm, s.contexts, s.outWindow, s.inWindow, s.in, pieces, round);
        CUDA(cudaGetLastError());
      } else
        for (int i = 0; i < STREAMS; i++) {
          waits<<<1, 256, 0, streams[i]>>>(s.devComm, s.contexts, i, s.out, PIECES[i], round, s.found, seen);
          CUDA(cudaGetLastError());
        }
    if (round == rounds - 1 && (!strcmp(how, "reset") || !strcmp(how, "exit"))) {
      over = true;
      memory.join();
      printf("rank %d %s in round %d of %d\n", rank, how, round, rounds);
      if (!strcmp(how, "reset"))
        printf("rank %d cudaDeviceReset: %s\n", rank, cudaGetErrorString(cudaDeviceReset()));
      exit(0);
    }
    while (__atomic_load_n(ended, __ATOMIC_ACQUIRE) != (uint32_t)(round + 1) * STREAMS)
      std::this_thread::yield();
    if (capture) {
      cudaGraph_t graph;
      CUDA(cudaStreamEndCapture(captured, &graph));
      CUDA(cudaGraphDestroy(graph));
    }
    for (int i = 0; i < STREAMS; i++)
      CUDA(cudaStreamSynchronize(streams[i]));
    everybody(s); /* The next round overwrites the bytes of this round. */
    run();
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  over = true;
  memory.join();
  uint64_t found[FINDINGS];
  readFindings(s, found);
  printf("rank %d %s: %d rounds of %d blocked streams in %.2f s, memory taken and given back %ld times, bytes wrong %llu\n", rank, how, rounds, STREAMS, seconds,
         taken.load(), (unsigned long long)found[0]);
  everybody(s);
  run();
  CUDA(cudaFree(pieces));
  release(s);
  NCCL(ncclCommDestroy(comm));
  return found[0] != 0;
}
