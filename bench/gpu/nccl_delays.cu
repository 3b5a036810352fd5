/*
 * One rank of a measurement of the time that a program's own calls wait because GIN makes copies on its device. Both
 * ranks put 7 KiB at a time to each other. Then they synchronize, free memory, launch cooperatively, or launch a kernel
 * that takes all shared memory of every multiprocessor.
 *
 * nccl_delays RANK RANKS ID_FILE ROUNDS
 *
 * Prints for each call its delay after the end of the kernel that puts. A synchronous call is measured at its return,
 * and a launch at the start of the launched kernel. Each call is measured behind a kernel that puts nothing, and
 * behind a kernel that puts. Rank 1 also measures cudaDeviceSynchronize behind a kernel that puts nothing, while rank
 * 0 puts. If CUBLAS names the library, the program also prints the speed of matrix products alone and beside puts, and
 * the time per put meanwhile.
 */
#include "gin_setting.cuh"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cooperative_groups.h>
#include <dlfcn.h>
#include <thread>
#include <vector>

#define BLOCKS 16
#define THREADS 64
#define EACH 2
#define PIECE 7168
#define QUIET_CYCLES 300000

/*
 * Words in host memory: the number of the last kernel `puts` that has ended, and the number of the last kernel that has
 * started on all multiprocessors.
 */
struct Words {
  uint32_t ended, begun;
};

static __device__ void tell(uint32_t *word, uint32_t round) { asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(round) : "memory"); }

__global__ void puts(ncclDevComm devComm, int contexts, ncclWindow_t to, ncclWindow_t from, size_t slot, bool quiet, uint32_t round, uint32_t *through, Words *words) {
  ncclGin gin{devComm, (int)blockIdx.x % contexts};
  int peer = (devComm.rank + 1) % devComm.nRanks;
  if (quiet) {
    for (long long begin = clock64(); clock64() - begin < QUIET_CYCLES;) {
    }
  } else {
    for (int i = 0; i < EACH; i++) {
      size_t at = ((size_t)(blockIdx.x * THREADS + threadIdx.x) * EACH + i) * PIECE;
      gin.put(ncclTeamWorld(devComm), peer, to, devComm.rank * slot + at, from, peer * slot + at, PIECE);
    }
    __syncthreads();
    if (threadIdx.x == 0)
      gin.flush(ncclCoopThread());
  }
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(through, 1) == round * gridDim.x - 1)
    tell(&words->ended, round);
}

/* Runs one block on each multiprocessor. The last block to start stores the kernel's number. */
__global__ void whole(uint32_t round, uint32_t *arrived, Words *words) {
  if (threadIdx.x == 0 && atomicAdd(arrived, 1) == round * gridDim.x - 1)
    tell(&words->begun, round);
}

__global__ void together(uint32_t round, uint32_t *arrived, Words *words) {
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0 && atomicAdd(arrived, 1) == round * gridDim.x - 1)
    tell(&words->begun, round);
}

typedef std::chrono::steady_clock Clock;
static std::atomic<uint32_t> watched{0};
static std::atomic<long long> endedAt{0}, begunAt{0};

static long long now() { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count(); }

/* Observes changes of the words, even while the program's thread is blocked. */
static void watch(const Words *words, std::atomic<bool> *stop) {
  uint32_t ended = 0, begun = 0;
  while (!*stop) {
    uint32_t e = __atomic_load_n(&words->ended, __ATOMIC_ACQUIRE), b = __atomic_load_n(&words->begun, __ATOMIC_ACQUIRE);
    if (e != ended) {
      ended = e;
      endedAt = now();
      watched = e;
    }
    if (b != begun) {
      begun = b;
      begunAt = now();
    }
  }
}

enum { NOBODY, EVERYBODY, RANK_0 };
static const char *PUTTING[] = {"no puts", "puts", "no puts, while the peer puts"};

enum { SYNCHRONISE, FREE, COOPERATIVE, WHOLE, CALLS };
static const char *NAMES[] = {"cudaDeviceSynchronize", "cudaFree", "cooperative launch", "kernel of all multiprocessors"};

#define N 8192
#define PRODUCTS 200

/* Multiplies N x N matrices of 16-bit values in a separate stream. Returns the speed in TFLOP/s. */
static double products(void *library, cudaStream_t own) {
  static void *handle, *values[3];
  static const float one = 1, none = 0;
  typedef int (*Multiply)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *, void *, int, int, int, int);
  Multiply multiply = (Multiply)dlsym(library, "cublasGemmEx");
  const int type = 14, compute = 68; /* CUDA_R_16BF, CUBLAS_COMPUTE_32F */
  if (!handle) {
    if (((int (*)(void **))dlsym(library, "cublasCreate_v2"))(&handle) || ((int (*)(void *, cudaStream_t))dlsym(library, "cublasSetStream_v2"))(handle, own))
      return 0;
    for (int i = 0; i < 3; i++)
      CUDA(cudaMalloc(&values[i], (size_t)N * N * 2));
  }
  cudaEvent_t begin, end;
  float ms;
  CUDA(cudaEventCreate(&begin));
  CUDA(cudaEventCreate(&end));
  CUDA(cudaEventRecord(begin, own));
  for (int i = 0; i < PRODUCTS; i++)
    if (multiply(handle, 0, 0, N, N, N, &one, values[0], type, N, values[1], type, N, &none, values[2], type, N, compute, -1))
      return 0;
  CUDA(cudaEventRecord(end, own));
  CUDA(cudaEventSynchronize(end));
  CUDA(cudaEventElapsedTime(&ms, begin, end));
  CUDA(cudaEventDestroy(begin));
  CUDA(cudaEventDestroy(end));
  return PRODUCTS * 2. * N * N * N / (ms * 1e9);
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: %s RANK RANKS ID_FILE ROUNDS\n", argv[0]);
    return 1;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  rank = atoi(argv[1]);
  ranks = atoi(argv[2]);
  int rounds = atoi(argv[4]);
  join(argv[3]);
  Setting s = newSetting((size_t)BLOCKS * THREADS * EACH * PIECE, 0, 1);
  Words *words, *seen;
  CUDA(cudaHostAlloc((void **)&words, sizeof *words, cudaHostAllocMapped));
  memset(words, 0, sizeof *words);
  CUDA(cudaHostGetDevicePointer((void **)&seen, words, 0));
  uint32_t *counts;
  CUDA(cudaMalloc((void **)&counts, 3 * sizeof *counts));
  CUDA(cudaMemset(counts, 0, 3 * sizeof *counts));
  int device, sms, shared;
  CUDA(cudaGetDevice(&device));
  CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  CUDA(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  CUDA(cudaFuncSetAttribute(whole, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  CUDA(cudaDeviceSynchronize());
  everybody(s);
  run();
  std::atomic<bool> stop{false};
  std::thread watcher(watch, words, &stop);
  uint32_t round = 0, wholes = 0;
  for (int call = 0; call < CALLS; call++)
    for (int putting = NOBODY; putting <= (call == SYNCHRONISE ? RANK_0 : EVERYBODY); putting++) {
      bool quiet = putting == NOBODY || (putting == RANK_0 && rank > 0);
      std::vector<double> delays;
      everybody(s);
      run();
      for (int i = 0; i < rounds; i++) {
        void *memory = NULL;
        if (call == FREE)
          CUDA(cudaMalloc(&memory, 1 << 20));
        round++;
        puts<<<BLOCKS, THREADS, 0, stream>>>(s.devComm, s.contexts, s.outWindow, s.inWindow, s.slot, quiet, round, &counts[0], seen);
        CUDA(cudaGetLastError());
        long long until = 0;
        if (call == SYNCHRONISE || call == FREE) {
          CUDA(call == FREE ? cudaFree(memory) : cudaDeviceSynchronize());
          until = now();
        } else {
          wholes++;
          uint32_t *arrived = &counts[1];
          if (call == WHOLE)
            whole<<<sms, 128, shared, stream>>>(wholes, arrived, seen);
          else {
            void *arguments[] = {&wholes, &arrived, &seen};
            CUDA(cudaLaunchCooperativeKernel((void *)together, sms, 1024, arguments, 0, stream));
          }
          CUDA(cudaGetLastError());
        }
        CUDA(cudaStreamSynchronize(stream));
        while (watched != round || __atomic_load_n(&words->begun, __ATOMIC_ACQUIRE) != wholes)
          ;
        std::this_thread::sleep_for(std::chrono::microseconds(20)); /* The watcher must also have seen the second word. */
        delays.push_back(((until ? until : begunAt.load()) - endedAt.load()) / 1e3);
      }
      std::sort(delays.begin(), delays.end());
      if (putting != RANK_0 || quiet)
        printf("rank %d %-30s behind %s: median %.1f, 99 %% %.1f, longest %.1f us\n", rank, NAMES[call], PUTTING[putting], delays[rounds / 2],
               delays[rounds * 99 / 100], delays[rounds - 1]);
    }
  stop = true;
  watcher.join();
  void *library = getenv("CUBLAS") ? dlopen(getenv("CUBLAS"), RTLD_NOW) : NULL;
  if (library) {
    cudaStream_t own;
    CUDA(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    products(library, own);
    double alone = products(library, own);
    everybody(s);
    run();
    std::atomic<bool> over{false};
    uint32_t before = round;
    long long begin = now();
    std::thread traffic([&] {
      CUDA(cudaSetDevice(device));
      while (!over) {
        round++;
        puts<<<BLOCKS, THREADS, 0, stream>>>(s.devComm, s.contexts, s.outWindow, s.inWindow, s.slot, false, round, &counts[0], seen);
        CUDA(cudaStreamSynchronize(stream));
      }
    });
    double beside = products(library, own);
    over = true;
    traffic.join();
    printf("rank %d products: alone %.0f TFLOP/s, beside puts %.0f (%.2f); a put each %.3f us\n", rank, alone, beside, beside / alone,
           (now() - begin) / 1e3 / (round - before) / (BLOCKS * THREADS * EACH));
  }
  everybody(s);
  run();
  CUDA(cudaFree(counts));
  release(s);
  NCCL(ncclCommDestroy(comm));
  return 0;
}
