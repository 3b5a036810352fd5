/* Only starts the plugin, as NCCL 2.28 does with a plugin that fails. Usage: LIBRARY. */
#define NET_VERSION 11
#include "versions.h"

/* Prints the class caches that this process has mapped, one line for each mapping. */
static void print_caches(void) {
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  REQUIRE(maps, "no /proc");
  while (fgets(line, sizeof line, maps))
    if (strstr(line, ".aot"))
      printf("MAPPED %s", strchr(line, '/'));
  fclose(maps);
}

int main(int count, char **arguments) {
  REQUIRE(count == 2, "usage: LIBRARY");
  void *library = open_plugin(arguments[1]);
  const net_t *net = symbol(library, TABLE_NAME);
  const JOIN(ncclTuner_v, TUNER_VERSION, _t) *tuner = symbol(library, "ncclTunerPlugin_v" STRING(TUNER_VERSION));
  void *ctx = NULL, *tunerCtx = NULL;
  int devices, channels = 0;
  REQUIRE(net->devices(&devices) == ncclInternalError, "devices before init");
  ncclResult_t result = net_init(net, &ctx);
  SUCCEEDS(net->finalize(ctx));
  /* A failing tuner fails the communicator, independent of its network. */
  SUCCEEDS(tuner->init(&tunerCtx, 1, 2, 2, logger, NULL, NULL));
  SUCCEEDS(tuner->getCollInfo(tunerCtx, ncclFuncAllReduce, 8, 1, NULL, 7, 3, 0, &channels));
  SUCCEEDS(tuner->finalize(tunerCtx));
  print_caches();
  printf("RESULT %d\n", result);
  return 0;
}
