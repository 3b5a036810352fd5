/*
 * Checks kernels that use GIN when a rank is killed. RANKS processes put to each other and wait for each other's
 * signals, as NCCL's kernels do, and check nothing else. Usage: LIBRARY WAY RANKS. Rank 0 is the victim. It leaves
 * children that outlive the other ranks.
 * - destroy: the survivors query the error, as ncclCommGetAsyncError does, wait for their kernel, and destroy.
 * - exit: the survivors do nothing.
 * - report: the survivors query the error, and check that their kernel still waits.
 */
#define _GNU_SOURCE
#include "children.h"
#include "gin_queue.h"

#include "nccl/gin_v14.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#define MOST_RANKS 8
#define DEPTH 16
#define BYTES 1000
#define ROUNDS 20000
#define ROUNDS_BEFORE 300
#define DEADLINE_MILLISECONDS 30000
#define STILL_MILLISECONDS 300

static struct {
  char handles[MOST_RANKS][NCCL_NET_HANDLE_MAXSIZE];
  pthread_barrier_t barrier;
  volatile long killed;
  pid_t children[CHILDREN];
} *shared;

static const ncclGin_v14_t *gin;
static const char *way;
static int ranks, self;
static ncclGinProxyGpuCtx_v2_t *context;
static uint64_t window;
static volatile long rounds;
static volatile int over;

static long milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *kernel(void *unused) {
  for (long round = 0; round < ROUNDS; round++) {
    for (int peer = 0; peer < ranks; peer++)
      if (peer != self)
        while (!gin_put(context, window, peer, 0, (uint64_t)(1 + self) * BYTES, BYTES, self))
          let_others_run();
    for (int peer = 0; peer < ranks; peer++)
      while (peer != self &&
             !gin_reached((uint64_t)round + 1, __atomic_load_n(&context->signals[peer], __ATOMIC_ACQUIRE)))
        let_others_run();
    rounds = round + 1;
  }
  for (int peer = 0; peer < ranks; peer++) /* flush */
    while (__atomic_load_n(&context->cis[peer], __ATOMIC_ACQUIRE) != context->pis[peer])
      let_others_run();
  over = 1;
  return unused;
}

static void await_error(void *ginCtx) {
  bool failed = false;
  long begun = milliseconds();
  while (!failed) {
    SUCCEEDS(gin->queryLastError(ginCtx, &failed));
    REQUIRE(!over, "rank %d: the kernel ended before the error was there", self);
    REQUIRE(milliseconds() - begun < DEADLINE_MILLISECONDS, "rank %d: no error", self);
    usleep(100);
  }
  printf("rank %d: error after %ld ms\n", self, milliseconds() - shared->killed);
}

static void be(const char *path) {
  void *ctx, *listenComm, *group, *ginCtx, *memory, *all[MOST_RANKS];
  int devices = 0;
  ncclNetDeviceHandle_t *handle = NULL;
  ncclGinConfig_v14_t config = {MOST_RANKS, 1, 1, DEPTH, -1, 2, 1};
  pthread_t thread;
  size_t bytes = (size_t)(1 + ranks) * BYTES;
  gin = symbol(open_plugin(path), "ncclGinPlugin_v14");
  look_at_descriptors(descriptors_before);
  SUCCEEDS(gin->init(&ctx, 0x77, logger));
  SUCCEEDS(gin->devices(&devices));
  SUCCEEDS(gin->listen(ctx, 0, shared->handles[self], &listenComm));
  pthread_barrier_wait(&shared->barrier);
  for (int peer = 0; peer < ranks; peer++)
    all[peer] = shared->handles[peer];
  SUCCEEDS(gin->connect(ctx, all, ranks, self, listenComm, &group));
  SUCCEEDS(gin->createContext(group, &config, &ginCtx, &handle));
  SUCCEEDS(gin->closeListen(listenComm));
  SUCCEEDS(gin->regMrSym(group, calloc(1, bytes), bytes, NCCL_PTR_HOST, 0, &memory, (void **)&window));
  context = handle->handle;
  pthread_barrier_wait(&shared->barrier);
  pthread_create(&thread, NULL, kernel, NULL);
  long begun = milliseconds();
  while (self == 0 && rounds < ROUNDS_BEFORE) {
    REQUIRE(milliseconds() - begun < DEADLINE_MILLISECONDS, "the kernels stand still after %ld rounds", rounds);
    usleep(100);
  }
  if (self == 0) {
    leave_children(shared->children);
    shared->killed = milliseconds();
    raise(SIGKILL);
  }
  if (strcmp(way, "exit") == 0)
    sleep(DEADLINE_MILLISECONDS / 1000);
  await_error(ginCtx);
  if (strcmp(way, "report") == 0) {
    long before = rounds, since = milliseconds();
    while (milliseconds() - since < STILL_MILLISECONDS)
      usleep(1000);
    printf("rank %d: kernel %s\n", self, !over && before < ROUNDS && rounds - before < ROUNDS_BEFORE ? "still waits" : "has ended");
    fflush(NULL);
    _exit(0);
  }
  pthread_join(thread, NULL);
  printf("rank %d: kernel ended after %ld ms\n", self, milliseconds() - shared->killed);
  SUCCEEDS(gin->destroyContext(ginCtx));
  SUCCEEDS(gin->closeColl(group));
  SUCCEEDS(gin->finalize(ctx));
}

int main(int count, char **arguments) {
  pid_t pids[MOST_RANKS];
  pthread_barrierattr_t among;
  REQUIRE(count == 4, "usage: LIBRARY destroy|exit|report RANKS");
  way = arguments[2];
  ranks = atoi(arguments[3]);
  REQUIRE(ranks >= 2 && ranks <= MOST_RANKS, "2 to %d ranks", MOST_RANKS);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED, "no shared memory");
  pthread_barrierattr_init(&among);
  pthread_barrierattr_setpshared(&among, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &among, (unsigned)ranks);
  adopt_orphans();
  for (self = 0; self < ranks; self++) {
    char number[16];
    fflush(NULL);
    pids[self] = fork();
    REQUIRE(pids[self] >= 0, "no process");
    if (pids[self] == 0) {
      snprintf(number, sizeof number, "%d", self);
      setenv("RANK", number, 1);
      be(arguments[1]);
      fflush(NULL);
      _exit(0);
    }
  }
  for (int rank = 0; rank < ranks; rank++) {
    int status;
    REQUIRE(waitpid(pids[rank], &status, 0) == pids[rank], "wait");
    if (WIFSIGNALED(status))
      printf("rank %d was killed by signal %d\n", rank, WTERMSIG(status));
    else
      printf("rank %d ended with status %d\n", rank, WEXITSTATUS(status));
  }
  end_children(shared->children);
  return 0;
}
