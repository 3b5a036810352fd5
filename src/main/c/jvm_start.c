/* Makes Java install its functions, in the process's JVM or in a JVM that is started here. */
#define _GNU_SOURCE
#include "jvm_find.h"
#include "shim.h"

#include <dlfcn.h>
#include <jni.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "compilers.h"
#include "descriptors.h"
#include "jvm_options.h"

#define STARTER_STACK_BYTES (8 << 20)
#define START_DEADLINE_SECONDS 60

typedef jint (*createdVms_t)(JavaVM **, jsize, jsize *);
typedef jint (*createVm_t)(JavaVM **, void **, void *);

enum state { NOT_STARTED, STARTING, STARTED, FAILED, FORKED };

/* State of the JVM, guarded by lock. The reason is one line that describes the failure. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* uses CLOCK_MONOTONIC, so that a change of the system's time ends no wait */
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static pid_t starter_pid;      /* process in which the JVM was started, which differs from a forked child */
static enum state state = NOT_STARTED;
static char reason[900];

/* Messages of the JVM during its start. They contain the reason of a failure. */
static char words[300];

static void succeed(void) {
  pthread_mutex_lock(&lock);
  if (state == STARTING)
    state = STARTED;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&lock);
  if (state == STARTING) {
    vsnprintf(reason, sizeof reason, format, arguments);
    state = FAILED;
  }
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  va_end(arguments);
}

/*
 * Collects the JVM's own messages during the start. Later messages go to their usual output, and messages for a file
 * (-Xlog:...:file=) always do.
 */
static jint JNICALL listen_to_vm(FILE *stream, const char *format, va_list arguments) {
  if (__atomic_load_n(&state, __ATOMIC_RELAXED) != STARTING || (stream != stdout && stream != stderr))
    return vfprintf(stream, format, arguments);
  size_t used = strlen(words);
  vsnprintf(words + used, sizeof words - used, format, arguments);
  return 0;
}

/* Returns the JVM's messages in one line. */
static const char *why(void) {
  size_t length = strlen(words);
  while (length > 0 && words[length - 1] == '\n')
    words[--length] = 0;
  for (size_t i = 0; i < length; i++)
    if (words[i] == '\n')
      words[i] = ' ';
  return length > 0 ? words : "it gave no reason";
}

/*
 * A JVM that cannot initialize itself calls exit. The plugin must not end the host's process, so this function suspends
 * the starting thread forever instead. After the start, the JVM may end the process.
 */
static void rest_if_starting(void) {
  if (__atomic_load_n(&state, __ATOMIC_RELAXED) != STARTING)
    return;
  char variables[64];
  millraceOptionVariables(variables, sizeof variables);
  fail("the JVM did not start: %s; check %s and the memory that is free", why(), variables);
  for (;;)
    pause();
}

static void JNICALL on_exit_of_vm(jint code) {
  (void)code;
  rest_if_starting();
}

static void JNICALL on_abort_of_vm(void) {
  rest_if_starting();
}

/* Writes the message of a pending exception to text. */
static void describe_exception(JNIEnv *env, char *text, size_t size) {
  jthrowable thrown = (*env)->ExceptionOccurred(env);
  (*env)->ExceptionClear(env);
  jclass object = (*env)->FindClass(env, "java/lang/Object");
  jmethodID toString = (*env)->GetMethodID(env, object, "toString", "()Ljava/lang/String;");
  jstring string = (*env)->CallObjectMethod(env, thrown, toString);
  const char *bytes = (*env)->ExceptionCheck(env) || !string ? NULL : (*env)->GetStringUTFChars(env, string, NULL);
  snprintf(text, size, "%s", bytes ? bytes : "an exception without a description");
  if (bytes)
    (*env)->ReleaseStringUTFChars(env, string, bytes);
  (*env)->ExceptionClear(env);
}

/* Lets Java install its functions. On failure, the message begins with where. */
static void call_java(JNIEnv *env, const char *where) {
  char text[500];
  jclass entry = (*env)->FindClass(env, "org/millrace/plugin/PluginEntry");
  jmethodID start = entry ? (*env)->GetStaticMethodID(env, entry, "start", "(IJ)Ljava/lang/String;") : NULL;
  jstring problem = NULL;
  if (start)
    problem = (*env)->CallStaticObjectMethod(env, entry, start, (jint)MILLRACE_PLUGIN_INTERFACE,
                                             (jlong)(intptr_t)millraceInstallUpcalls);
  if ((*env)->ExceptionCheck(env)) {
    describe_exception(env, text, sizeof text);
    fail("%s: %s (is Millrace of this release there?)", where, text);
  } else if (problem) {
    const char *bytes = (*env)->GetStringUTFChars(env, problem, NULL);
    fail("%s: %s", where, bytes ? bytes : "out of memory");
    if (bytes)
      (*env)->ReleaseStringUTFChars(env, problem, bytes);
  } else {
    succeed();
  }
}

/* Returns true if the process already has a JVM. Then only that JVM is used. */
static int use_existing_vm(void) {
  void *library = dlopen("libjvm.so", RTLD_NOW | RTLD_NOLOAD);
  createdVms_t created = library ? (createdVms_t)dlsym(library, "JNI_GetCreatedJavaVMs") : NULL;
  JavaVM *vm;
  JNIEnv *env;
  jsize count = 0;
  if (!created || created(&vm, 1, &count) != JNI_OK || count == 0)
    return 0;
  if ((*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&env, NULL) != JNI_OK) {
    fail("this process runs a JVM that no thread can be attached to");
    return 1;
  }
  call_java(env, "this process runs a JVM, whose class path needs millrace.jar");
  (*vm)->DetachCurrentThread(vm);
  return 1;
}

/* glibc crashes if a library in a namespace of dlmopen opens another with RTLD_GLOBAL. */
static int visibility(void) {
  Dl_info here;
  struct link_map *map = NULL;
  Lmid_t namespace = LM_ID_BASE;
  if (dladdr1((void *)visibility, &here, (void **)&map, RTLD_DL_LINKMAP) && map)
    dlinfo(map, RTLD_DI_LMID, &namespace);
  return namespace == LM_ID_BASE ? RTLD_GLOBAL : RTLD_LOCAL;
}

static void start_vm(ncclDebugLogger_t logFunction) {
  char directory[PATH_MAX], library[PATH_MAX], report[700];
  struct millraceOptions options;
  int release;
  const char *problem = millraceLocatePlugin(directory, sizeof directory);
  if (problem) {
    fail("%s", problem);
    return;
  }
  /* The hooks for messages and exit come first, because the JVM may report an error in each later option. */
  options.count = 0;
  millraceAddOption(&options, "vfprintf", (void *)listen_to_vm);
  millraceAddOption(&options, "exit", (void *)on_exit_of_vm);
  millraceAddOption(&options, "abort", (void *)on_abort_of_vm);
  if (millraceJvmOptions(directory, &options) != 0) {
    fail("%s", options.problem);
    return;
  }
  if (millraceFindJvm(directory, library, sizeof library, report, sizeof report, &release) != 0) {
    fail("no Java %d or newer was found; looked at %s. Install one, or set MILLRACE_JAVA_HOME to its home",
         MILLRACE_OLDEST_JAVA, report);
    return;
  }
  millraceAddCompilerOptions(&options);
  millraceAddCache(directory, release, &options);
  if (millraceAddUsersOptions(&options) != 0) {
    fail("%s", options.problem);
    return;
  }
  void *handle = dlopen(library, RTLD_NOW | visibility());
  createVm_t create = handle ? (createVm_t)dlsym(handle, "JNI_CreateJavaVM") : NULL;
  if (!create) {
    fail("cannot load %s: %s", library, dlerror());
    return;
  }
  millraceTellOptions(logFunction);
  millraceKeepDescriptors(1);
  millraceShareFaults((void *)create);
  JavaVMInitArgs arguments = {JNI_VERSION_21, options.count, options.options, JNI_FALSE};
  JavaVM *vm;
  JNIEnv *env;
  jint result = create(&vm, (void **)&env, &arguments);
  if (options.cacheCopy >= 0)
    close(options.cacheCopy);
  if (result != JNI_OK) {
    char variables[64];
    millraceOptionVariables(variables, sizeof variables);
    fail("the JVM %s did not start (%d): %s; check %s", library, result, why(), variables);
    return;
  }
  millraceDeleteLeftoversAtExit();
  millraceLowerCompilers();
  call_java(env, options.jar);
  (*vm)->DetachCurrentThread(vm);
}

static void *starter(void *logFunction) {
  if (!use_existing_vm())
    start_vm((ncclDebugLogger_t)logFunction);
  return NULL;
}

/* Starts a separate thread, because a caller's stack may be too small for a JVM. */
static int launch(ncclDebugLogger_t logFunction) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t before;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STARTER_STACK_BYTES);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  millraceBlockSignals(&before);
  int result = pthread_create(&thread, &attributes, starter, (void *)logFunction);
  millraceRestoreSignals(&before);
  pthread_attr_destroy(&attributes);
  return result;
}

static void make_condition(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &attributes);
  pthread_condattr_destroy(&attributes);
}

/* A forked child has the JVM's memory without its threads, so a caller would wait forever. */
static void leave_to_parent(void) {
  millraceForget();
  if (state == STARTING || state == STARTED) {
    snprintf(reason, sizeof reason,
             "this process was forked from process %d, where the plugin's JVM runs: its threads do not survive a "
             "fork. Start such a process anew (exec; in Python multiprocessing's 'spawn' or 'forkserver'), or fork it "
             "before NCCL is initialized", (int)starter_pid);
    state = FORKED;
  }
}

static void before_fork(void) {
  pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void) {
  pthread_mutex_unlock(&lock);
}

/* This thread has held the lock since before the fork. No thread of the child waits for the condition. */
static void after_fork_in_child(void) {
  make_condition();
  leave_to_parent();
  pthread_mutex_unlock(&lock);
}

static void prepare(void) {
  make_condition();
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

ncclResult_t millraceStart(ncclDebugLogger_t logFunction) {
  pthread_once(&prepared, prepare);
  millraceWarnThrough(logFunction);
  /* clone(2) and _Fork() do not call the fork handlers, so the child is detected here */
  pid_t started_by = __atomic_load_n(&starter_pid, __ATOMIC_RELAXED);
  if (started_by && started_by != getpid() && millraceInstalled())
    leave_to_parent();
  if (millraceInstalled())
    return ncclSuccess;
  struct timespec deadline;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_sec += START_DEADLINE_SECONDS;
  pthread_mutex_lock(&lock);
  if (state == NOT_STARTED) {
    state = STARTING;
    __atomic_store_n(&starter_pid, getpid(), __ATOMIC_RELAXED);
    if (launch(logFunction) != 0) {
      snprintf(reason, sizeof reason, "cannot create a thread to start a JVM");
      state = FAILED;
    }
  }
  while (state == STARTING)
    if (pthread_cond_timedwait(&changed, &lock, &deadline) != 0 && state == STARTING) {
      snprintf(reason, sizeof reason, "the JVM did not start within %d s", START_DEADLINE_SECONDS);
      state = FAILED;
    }
  int started = state == STARTED;
  pthread_mutex_unlock(&lock);
  if (started)
    return ncclSuccess;
  millraceWarn("%s. NCCL will use another network", reason);
  return ncclSystemError;
}
