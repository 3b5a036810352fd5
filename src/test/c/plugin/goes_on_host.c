/*
 * A program that continues after the loss of a peer, as NCCL's documentation describes it. Rank 0 is one process that
 * calls ncclCommGetAsyncError of a stub of libnccl. Rank 1 is killed in the middle of the traffic and started anew.
 * Usage: LIBRARY WAY LOSSES [ASKER].
 * - abort: rank 0 receives the error, aborts and joins a new communicator, LOSSES times. In the last communicator no
 * rank is killed. Rank 0 then waits until its standard input is closed.
 * - stay: rank 0 receives the error, and does nothing for longer than the grace period.
 * - shrink: rank 0 does not query the error, and continues without rank 1. Its old communicator stays until its
 * standard input is closed.
 * - silent: rank 0 queries the error and receives none. The caller judges the outcome.
 *
 * ASKER is a library that rank 0 opens once the communicator exists, and through which it queries the error.
 */
#define _GNU_SOURCE
#include "communicator.h"
#include "nccl/api.h"
#include "process.h"

#include <signal.h>

#define LOSSES 64
#define ENDLESS 1000000000L
#define CHANNELS 3
#define STEPS_BEFORE 100
#define FIRST_HASH 0x6f65735f6f6e0000
#define BYSTANDER 0x6279737461640000
/* Number of losses after which the resources must stay constant until the end. */
#define SETTLED 5

ncclComm_t stubCommunicator(uint64_t hash);
void stubAsyncResult(ncclComm_t comm, ncclResult_t result);
ncclDebugLogger_t stubLogger(void);

typedef ncclResult_t (*question_t)(ncclComm_t, ncclResult_t *);

/* Time when the victim killed itself. All processes share it. */
static volatile long *killed;
static const char *path, *way, *asker;
static int losses, ends[LOSSES + 1][2];
static question_t question = ncclCommGetAsyncError;
static ncclNetCommConfig_v11_t config = {NCCL_NET_TRAFFIC_CLASS_UNDEF};

typedef ncclResult_t (*shrink_t)(ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int);
/* The address of this function is an import, too. The plugin redirects it after a loss. */
static shrink_t volatile shrink = ncclCommShrink;

/*
 * Takes the addresses of two functions. In a program at fixed addresses each is the address of a jump in the program.
 */
static int takes_addresses(void) {
  void *volatile allocates = (void *)malloc, *volatile asks = (void *)ncclCommGetAsyncError;
  return allocates != asks;
}

static int is(const char *name) {
  return strcmp(way, name) == 0;
}

/* Queries the error. Without an asker the call uses the program's own import table. */
static ncclResult_t ask(ncclComm_t comm) {
  ncclResult_t error = ncclNumResults;
  SUCCEEDS(asker ? question(comm, &error) : ncclCommGetAsyncError(comm, &error));
  return error;
}

static void load_asker(void) {
  if (asker)
    question = (question_t)symbol(open_plugin(asker), "askForError");
}

/*
 * NCCL creates and closes a communicator's connections on a thread of that communicator. This program keeps these
 * threads after the communicators. Each thread keeps a malloc arena that no other thread uses, so the next communicator
 * cannot reuse, and hide, memory that the last one has leaked.
 */
struct service {
  struct rank *rank;
  pthread_barrier_t joined, ending, ended;
};

static void *serve(void *argument) {
  struct service *service = argument;
  struct buffer_sizes sizes = buffer_sizes(1);
  set_up(service->rank, &sizes);
  pthread_barrier_wait(&service->joined);
  pthread_barrier_wait(&service->ending);
  tear_down(service->rank);
  pthread_barrier_wait(&service->ended);
  for (;;)
    pause();
  return NULL;
}

static void end_service(struct service *service) {
  pthread_barrier_wait(&service->ending);
  pthread_barrier_wait(&service->ended);
}

static ncclComm_t join(struct rank *rank, int generation, uint64_t hash, struct service *service) {
  pthread_t thread;
  rank->bootstrap = ends[generation][rank->number];
  SUCCEEDS(rank->net->init(&rank->ctx, hash, &config, stubLogger(), NULL));
  service->rank = rank;
  pthread_barrier_init(&service->joined, NULL, 2);
  pthread_barrier_init(&service->ending, NULL, 2);
  pthread_barrier_init(&service->ended, NULL, 2);
  REQUIRE(pthread_create(&thread, NULL, serve, service) == 0, "no thread");
  kept_threads++;
  pthread_barrier_wait(&service->joined);
  return stubCommunicator(hash);
}

static void await_steps(const struct kernel *kernels) {
  while (__atomic_load_n(&kernels[0].totals.steps, __ATOMIC_RELAXED) < STEPS_BEFORE)
    let_others_run();
}

static void join_kernels(struct kernel *kernels, int count) {
  for (int i = 0; i < count; i++)
    pthread_join(kernels[i].thread, NULL);
}

static void await_error(ncclComm_t comm, ncclComm_t bystander) {
  long begin = now_milliseconds();
  ncclResult_t error;
  while ((error = ask(comm)) == ncclSuccess) {
    REQUIRE(now_milliseconds() - begin < STUCK_MILLISECONDS, "not told");
    REQUIRE(ask(bystander) == ncclSuccess, "told of another communicator");
    let_others_run();
  }
  printf("told after %ld ms\n", now_milliseconds() - *killed);
  REQUIRE(error == ncclRemoteError, "told of error %d", error);
  REQUIRE(ask(bystander) == ncclSuccess, "told of another communicator");
  /* Lost peers take precedence over ncclInProgress, but not over NCCL's own errors. */
  stubAsyncResult(comm, ncclInProgress);
  REQUIRE(ask(comm) == ncclRemoteError, "in progress");
  stubAsyncResult(comm, ncclSystemError);
  REQUIRE(ask(comm) == ncclSystemError, "not NCCL's own error");
  stubAsyncResult(comm, ncclSuccess);
}

/* Returns whether the thread that watches losses exists. */
static int is_watched(void) {
  int found = 0;
  DIR *stream = opendir("/proc/self/task");
  for (struct dirent *entry; (entry = readdir(stream));) {
    char file[300], name[32] = "";
    snprintf(file, sizeof file, "/proc/self/task/%s/comm", entry->d_name);
    FILE *comm = fopen(file, "r");
    if (comm) {
      found |= fgets(name, sizeof name, comm) && strncmp(name, "millrace-losses", 15) == 0;
      fclose(comm);
    }
  }
  closedir(stream);
  return found;
}

/* Waits until all threads except the kept ones have ended. */
static void settle(long threads_before) {
  long deadline = now_milliseconds() + STUCK_MILLISECONDS;
  while ((is_watched() || (threads_before && threads() - kept_threads > threads_before)) &&
         now_milliseconds() < deadline)
    let_others_run();
}

static void await_end_of_input(void) {
  printf("rank 0 went on\n");
  fflush(stdout);
  while (getchar() != EOF)
    ;
}

static void survive(struct rank *rank, int generation, ncclComm_t bystander) {
  static struct kernel kernels[2 * MAX_CHANNELS];
  static long before;
  volatile int stop = 0;
  int last = generation == losses, count = 2 * rank->channels;
  uint64_t hash = FIRST_HASH + 2 * (uint64_t)generation;
  static struct service services[LOSSES + 1];
  ncclComm_t comm = join(rank, generation, hash, &services[generation]), child;
  if (generation == 0)
    load_asker();
  prepare_kernels(rank, kernels, last ? STEPS_BEFORE : ENDLESS, hash, &stop);
  REQUIRE(ask(comm) == ncclSuccess, "told before anything was lost");
  if (last) {
    run_kernels(kernels, count);
    REQUIRE(ask(comm) == ncclSuccess, "told, and nothing was lost");
  } else {
    for (int i = 0; i < count; i++)
      start_kernel(&kernels[i]);
    if (is("shrink")) {
      while (shrink == (shrink_t)symbol(RTLD_DEFAULT, "ncclCommShrink"))
        let_others_run();
      SUCCEEDS(shrink(comm, (int[]){1}, 1, &child, NULL, NCCL_SHRINK_ABORT));
      settle(0);
      REQUIRE(!is_watched(), "it is still watched");
      REQUIRE(ask(child) == ncclSuccess, "told of the child");
      await_end_of_input();
    } else if (is("silent")) {
      for (;;) {
        REQUIRE(ask(comm) == ncclSuccess, "told");
        let_others_run();
      }
    } else {
      await_error(comm, bystander);
    }
    if (is("stay"))
      for (long since = now_milliseconds(); now_milliseconds() - since < 1000;)
        let_others_run();
    stop = 1;
    join_kernels(kernels, count);
  }
  end_service(&services[generation]);
  SUCCEEDS(ncclCommDestroy(comm));
  if (generation == SETTLED || last) {
    settle(before);
    before = threads() - kept_threads;
    print_process("after", generation);
  }
}

/* Allocates and frees a large block, as CUDA and NCCL do. malloc then also keeps freed blocks up to this size. */
static void give_large_memory_back(void) {
  void *volatile large = malloc(31 << 20);
  free(large);
}

static void be_survivor(void) {
  struct rank rank = {.channels = CHANNELS};
  void *library = open_plugin(path), *context;
  ncclComm_t bystander = stubCommunicator(BYSTANDER);
  rank.net = symbol(library, TABLE_NAME);
  give_large_memory_back();
  for (int i = 0; i <= losses; i++)
    close(ends[i][1]);
  SUCCEEDS(rank.net->init(&context, BYSTANDER, &config, stubLogger(), NULL));
  for (int generation = 0; generation <= losses; generation++)
    survive(&rank, generation, bystander);
  if (is("abort"))
    await_end_of_input();
  SUCCEEDS(rank.net->finalize(context));
}

static void be_victim(int generation) {
  static struct kernel kernels[2 * MAX_CHANNELS];
  struct rank rank = {.number = 1, .channels = CHANNELS};
  volatile int stop = 0;
  int last = generation == losses;
  uint64_t hash = FIRST_HASH + 2 * (uint64_t)generation;
  for (int i = 0; i <= losses; i++)
    close(ends[i][0]);
  rank.net = symbol(open_plugin(path), TABLE_NAME);
  static struct service service;
  join(&rank, generation, hash, &service);
  prepare_kernels(&rank, kernels, last ? STEPS_BEFORE : ENDLESS, hash, &stop);
  if (last) {
    run_kernels(kernels, 2 * rank.channels);
    end_service(&service);
    return;
  }
  for (int i = 0; i < 2 * rank.channels; i++)
    start_kernel(&kernels[i]);
  await_steps(kernels);
  *killed = now_milliseconds();
  raise(SIGKILL);
}

/* Forks before any process has a JVM. */
static pid_t start(const char *number, int generation) {
  fflush(NULL);
  pid_t pid = fork();
  REQUIRE(pid >= 0, "no process");
  if (pid == 0) {
    setenv("RANK", number, 1);
    if (*number == '0')
      be_survivor();
    else
      be_victim(generation);
    exit(0);
  }
  return pid;
}

int main(int count, char **arguments) {
  int status;
  REQUIRE(count == 4 || count == 5, "usage: LIBRARY abort|stay|shrink|silent LOSSES [ASKER]");
  path = arguments[1];
  way = arguments[2];
  losses = atoi(arguments[3]);
  asker = arguments[4];
  REQUIRE(takes_addresses(), "no addresses");
  REQUIRE(losses >= 1 && losses <= LOSSES, "1 to %d losses", LOSSES);
  killed = mmap(NULL, sizeof *killed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(killed != MAP_FAILED, "no shared memory");
  for (int i = 0; i <= losses; i++)
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) == 0, "no sockets");
  pid_t survivor = start("0", 0), next = start("1", 0);
  printf("rank 0 is pid %d\n", (int)survivor);
  for (int generation = 0; generation <= losses; generation++) {
    pid_t other = next;
    /* Rank 1's JVM starts while rank 0 learns of this loss. Rank 1 then waits until rank 0 connects to it. */
    if (generation < losses && !is("silent"))
      next = start("1", generation + 1);
    REQUIRE(waitpid(other, &status, 0) == other, "wait");
    REQUIRE(generation == losses ? status == 0 : WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
            "rank 1 of %d ended with %d", generation, status);
    close(ends[generation][0]);
    close(ends[generation][1]);
    if (is("silent"))
      break;
  }
  REQUIRE(waitpid(survivor, &status, 0) == survivor, "wait");
  printf("rank 0 ended with status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -status);
  printf("OK " TABLE_NAME "\n");
  return 0;
}
