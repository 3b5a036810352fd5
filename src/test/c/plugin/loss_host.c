/*
 * Checks ranks that lose a peer. RANKS processes form a ring. Each is connected to both neighbors over connections that
 * are taken over, and kernels send in both directions. Usage: LIBRARY WAY RANKS. Rank 0 is the victim.
 * - wait: the victim is killed. The survivors do nothing.
 * - enqueue: the victim is killed. The survivors enqueue until they receive an error, and destroy their communicators.
 * - leave: the victim ends without a shutdown message and without kernels. The others stay until the plugin has queried
 * their device, which is a stub, and found it idle.
 * - fork: the victim is killed and leaves two children, one of which has executed another program. The survivors do
 * nothing, and have ended when the children end.
 * - exit: all ranks exit in the middle of the traffic, and close nothing.
 * - stop: the victim is stopped until its neighbor stalls, and then continues. All ranks destroy their communicators.
 */
#define _GNU_SOURCE
#include "children.h"
#include "communicator.h"

#include <signal.h>

#define MOST_RANKS 8
#define ENDLESS 1000000000L
#define STEPS_BEFORE 300
#ifndef STILL_MILLISECONDS
#define STILL_MILLISECONDS 400
#endif
#define LOOKS 3
#define COMMUNICATOR 0x1234 /* identifier that net_init passes to the plugin */

static const char *way;
static int ranks;
/* Connections to the next rank and to the previous one. */
static struct rank links[2];
static struct kernel kernels[2][2];
static volatile int stop;
static pid_t pids[MOST_RANKS];

/* State that all processes share. */
static struct {
  int running;
  int without_kernels;
  volatile int stopped;
  volatile int over;
  pid_t children[CHILDREN];
} *shared;

static int is(const char *name) {
  return strcmp(way, name) == 0;
}

static long steps_done(void) {
  long sum = 0;
  for (int link = 0; link < 2; link++)
    for (int i = 0; i < 2; i++)
      sum += __atomic_load_n(&kernels[link][i].totals.steps, __ATOMIC_RELAXED);
  return sum;
}

static void connect_all(void) {
  struct buffer_sizes sizes = buffer_sizes(1);
  for (int link = 0; link < 2; link++)
    set_up(&links[link], &sizes);
}

static void start_all(void) {
  for (int link = 0; link < 2; link++) {
    prepare_kernels(&links[link], kernels[link], ENDLESS, 0x105e, &stop);
    for (int i = 0; i < 2; i++)
      start_kernel(&kernels[link][i]);
  }
}

static void end_kernels(void) {
  stop = 1;
  for (int link = 0; link < 2; link++)
    for (int i = 0; i < 2; i++)
      if (kernels[link][i].thread)
        pthread_join(kernels[link][i].thread, NULL);
}

static void destroy(void) {
  if (!stop)
    end_kernels();
  for (int link = 0; link < 2; link++)
    for (int i = 0; i < 2; i++)
      free_connection(&links[link], &links[link].connections[i]);
  finalize(&links[0]);
}

static long steps_of(int link) {
  return __atomic_load_n(&kernels[link][0].totals.steps, __ATOMIC_RELAXED);
}

/*
 * Runs a neighbor of the stopped rank: waits until this neighbor has stalled for a while, and lets the rank continue.
 */
static void outlast(int link) {
  long last = -1, since = 0, now;
  while (!shared->stopped)
    let_others_run();
  while ((now = now_milliseconds()) - since < STILL_MILLISECONDS || last < 0) {
    long steps = steps_of(link);
    if (steps != last)
      since = now;
    last = steps;
    let_others_run();
  }
  kill(pids[0], SIGCONT);
  while (steps_of(link) < last + STEPS_BEFORE)
    let_others_run();
  shared->over = 1;
}

/* Enqueues as NCCL does with every collective. Returns the error that the program receives. */
static ncclResult_t enqueue_until_refused(void *library) {
  const JOIN(ncclTuner_v, TUNER_VERSION, _t) *tuner = symbol(library, "ncclTunerPlugin_v" STRING(TUNER_VERSION));
  void *ctx = NULL;
  long deadline = now_milliseconds() + STUCK_MILLISECONDS;
  ncclResult_t result = ncclSuccess;
  SUCCEEDS(tuner->init(&ctx, COMMUNICATOR, (size_t)ranks, (size_t)ranks, logger, NULL, NULL));
  REQUIRE(ctx, "no tuner");
  while (result == ncclSuccess) {
    float costs[7][3] = {{0}};
    int channels = 0;
    REQUIRE(now_milliseconds() < deadline, "no error");
    result = tuner->getCollInfo(ctx, ncclFuncAllReduce, 8, 1, (float **)costs, 7, 3, 0, &channels);
    let_others_run();
  }
  SUCCEEDS(tuner->finalize(ctx));
  return result;
}

static void be(const char *path, int number, int next, int previous) {
  void *library = open_plugin(path), *ctx;
  const net_t *net = symbol(library, TABLE_NAME);
  /* Of two neighbors, the previous rank has number 0 on their connection. */
  links[0] = (struct rank){.number = 0, .net = net, .bootstrap = next, .channels = 1};
  links[1] = (struct rank){.number = 1, .net = net, .bootstrap = previous, .channels = 1};
  look_at_descriptors(descriptors_before);
  SUCCEEDS(net_init(net, &ctx));
  links[0].ctx = links[1].ctx = ctx;
  if (number % 2) { /* odd ranks connect to the previous rank first, because each connection waits for its other end */
    struct rank first = links[0];
    links[0] = links[1];
    links[1] = first;
  }
  connect_all();
  if (is("leave")) {
    meet(&links[0]);
    meet(&links[1]);
    if (number == 0)
      _exit(0);
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    REQUIRE(cuda, "%s", dlerror());
    int (*looks)(void) = (int (*)(void))symbol(cuda, "stubSynchronizations");
    while (looks() < LOOKS)
      let_others_run();
    destroy();
    printf("rank %d destroyed its communicator\n", number);
    return;
  }
  start_all();
  while (steps_done() < STEPS_BEFORE)
    let_others_run();
  /* No rank ends before every rank has done STEPS_BEFORE steps, because a neighbor of an ended rank cannot do them. */
  __atomic_add_fetch(&shared->running, 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(&shared->running, __ATOMIC_ACQUIRE) < ranks)
    let_others_run();
  if (is("exit"))
    exit(0);
  if (number == 0 && is("fork"))
    leave_children(shared->children);
  if (number == 0)
    raise(is("stop") ? SIGSTOP : SIGKILL);
  if (is("enqueue"))
    printf("rank %d enqueues: result %d\n", number, enqueue_until_refused(library));
  else if (is("stop") && number == 1)
    outlast(0); /* links[0] of rank 1 leads to rank 0 */
  while (is("wait") || is("fork") || (is("stop") && !shared->over))
    let_others_run();
  if (is("stop")) {
    /* No rank destroys while a neighbor's kernel may post. The neighbor would report a lost peer, and rightly so. */
    end_kernels();
    __atomic_add_fetch(&shared->without_kernels, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&shared->without_kernels, __ATOMIC_ACQUIRE) < ranks)
      let_others_run();
  }
  destroy();
  printf("rank %d destroyed its communicator\n", number);
}

int main(int count, char **arguments) {
  int ends[MOST_RANKS][2], left;
  REQUIRE(count == 4, "usage: LIBRARY wait|fork|enqueue|leave|exit|stop RANKS");
  way = arguments[2];
  ranks = left = atoi(arguments[3]);
  REQUIRE(ranks >= 2 && ranks <= MOST_RANKS && ranks % 2 == 0, "an even number of ranks, 2 to %d", MOST_RANKS);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED, "no shared memory");
  adopt_orphans();
  for (int i = 0; i < ranks; i++)
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) == 0, "no sockets");
  for (int i = 0; i < ranks; i++) {
    char number[16];
    fflush(NULL);
    pids[i] = fork();
    REQUIRE(pids[i] >= 0, "no process");
    if (pids[i] == 0) {
      int next = ends[i][0], previous = ends[(i + ranks - 1) % ranks][1];
      for (int k = 0; k < ranks; k++)
        for (int side = 0; side < 2; side++)
          if (ends[k][side] != next && ends[k][side] != previous)
            close(ends[k][side]);
      snprintf(number, sizeof number, "%d", i);
      setenv("RANK", number, 1);
      be(arguments[1], i, next, previous);
      exit(0);
    }
    printf("rank %d is pid %d\n", i, (int)pids[i]);
  }
  for (int i = 0; i < ranks; i++)
    close(ends[i][0]), close(ends[i][1]);
  while (left > 0) {
    int status, who = 0;
    pid_t pid = waitpid(-1, &status, WUNTRACED);
    REQUIRE(pid > 0, "wait");
    while (pids[who] != pid)
      who++;
    if (WIFSTOPPED(status)) {
      printf("rank %d is stopped\n", who);
      shared->stopped = 1;
      continue;
    }
    left--;
    if (WIFSIGNALED(status))
      printf("rank %d was killed by signal %d\n", who, WTERMSIG(status));
    else
      printf("rank %d ended with status %d\n", who, WEXITSTATUS(status));
  }
  if (is("fork"))
    end_children(shared->children);
  printf("OK " TABLE_NAME "\n");
  return 0;
}
