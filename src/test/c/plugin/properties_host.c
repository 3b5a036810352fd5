/*
 * Checks the structures that the plugin fills for its caller, in every version of every table. Each structure lies
 * between canaries. Usage: LIBRARY BYTES. BYTES is the size of GIN v15's properties in this NCCL. With 0 the plugin
 * must refuse them.
 */
#define _GNU_SOURCE
#include "host.h"

#include "nccl/gin_v12.h"
#include "nccl/gin_v13.h"
#include "nccl/gin_v14.h"
#include "nccl/gin_v15.h"
#include "nccl/rma_v17.h"

#define CANARY 0xa5
#define CANARIES 256

/* A structure of the given size with canaries on both sides. */
struct guarded {
  unsigned char before[CANARIES], structure[1024 + CANARIES];
};

static void *guard(struct guarded *guarded) {
  memset(guarded, CANARY, sizeof *guarded);
  return guarded->structure;
}

static void check(const struct guarded *guarded, size_t bytes, const char *table) {
  for (size_t i = 0; i < CANARIES; i++) {
    REQUIRE(guarded->before[i] == CANARY, "%s wrote %zu bytes before the structure", table, CANARIES - i);
    REQUIRE(guarded->structure[bytes + i] == CANARY, "%s wrote to byte %zu of %zu", table, bytes + i, bytes);
  }
}

/* Fills a structure by a call that uses the structure's address as the variable "to". */
#define FILL(table, bytes, expected, call)                                     \
  do {                                                                         \
    struct guarded guarded;                                                    \
    void *to = guard(&guarded);                                                \
    REQUIRE((call) == (expected), "%s", table);                                \
    check(&guarded, bytes, table);                                             \
  } while (0)

#define PROPERTIES(kind, symbolKind, version, properties)                                                       \
  do {                                                                                                          \
    const nccl##kind##_v##version##_t *table = symbol(library, "nccl" symbolKind "Plugin_v" #version);          \
    FILL(symbolKind " v" #version, sizeof(properties), ncclSuccess, table->getProperties(0, to));               \
  } while (0)

static void check_gin15(void *library, size_t bytes) {
  const ncclGin_v15_t *gin = symbol(library, "ncclGinPlugin_v15");
  struct guarded guarded;
  void *ctx;
  for (int i = 0; i < 2; i++)
    REQUIRE(gin->init(&ctx, 2, logger) == (bytes ? ncclSuccess : ncclInvalidUsage), "init");
  ncclResult_t result = gin->getGinProperties(guard(&guarded));
  REQUIRE(result == (bytes ? ncclSuccess : ncclInvalidUsage), "result %d", result);
  check(&guarded, bytes, "GIN v15");
  ncclGinProperties_v15_t *properties = (void *)guarded.structure;
  REQUIRE(bytes < 2 || (properties->supportsStrongSignals && properties->supportsVASignals), "a flag is not set");
  REQUIRE(bytes < 8 || properties->barrierOptions == NCCL_GIN_BARRIER_DEFAULT, "another barrier");
}

int main(int count, char **arguments) {
  REQUIRE(count == 3, "usage: LIBRARY BYTES");
  void *library = open_plugin(arguments[1]), *ctx, *ginCtx;
  const ncclNet_v12_t *net = symbol(library, "ncclNetPlugin_v12");
  const ncclGin_v14_t *gin14 = symbol(library, "ncclGinPlugin_v14");
  const ncclRma_v16_t *rma16 = symbol(library, "ncclRmaPlugin_v16");
  const ncclRma_v17_t *rma17 = symbol(library, "ncclRmaPlugin_v17");
  ncclNetCommConfig_v12_t config = {NCCL_NET_TRAFFIC_CLASS_UNDEF};
  SUCCEEDS(net->init(&ctx, 1, &config, logger, NULL));
  PROPERTIES(Net, "Net", 8, ncclNetProperties_v8_t);
  PROPERTIES(Net, "Net", 9, ncclNetProperties_v9_t);
  PROPERTIES(Net, "Net", 10, ncclNetProperties_v10_t);
  PROPERTIES(Net, "Net", 11, ncclNetProperties_v11_t);
  PROPERTIES(Net, "Net", 12, ncclNetProperties_v12_t);
  PROPERTIES(CollNet, "CollNet", 8, ncclNetProperties_v8_t);
  PROPERTIES(CollNet, "CollNet", 9, ncclNetProperties_v9_t);
  PROPERTIES(CollNet, "CollNet", 10, ncclNetProperties_v10_t);
  PROPERTIES(CollNet, "CollNet", 11, ncclNetProperties_v11_t);
  PROPERTIES(CollNet, "CollNet", 12, ncclNetProperties_v12_t);
  SUCCEEDS(gin14->init(&ginCtx, 1, logger));
  PROPERTIES(Gin, "Gin", 11, ncclNetProperties_v11_t);
  PROPERTIES(Gin, "Gin", 12, ncclNetProperties_v11_t);
  PROPERTIES(Gin, "Gin", 13, ncclNetProperties_v12_t);
  PROPERTIES(Gin, "Gin", 14, ncclNetProperties_v12_t);
  PROPERTIES(Gin, "Gin", 15, ncclNetProperties_v12_t);
  PROPERTIES(Rma, "Rma", 14, ncclNetProperties_v12_t);
  PROPERTIES(Rma, "Rma", 15, ncclNetProperties_v12_t);
  PROPERTIES(Rma, "Rma", 16, ncclNetProperties_v12_t);
  PROPERTIES(Rma, "Rma", 17, ncclNetProperties_v12_t);
  FILL("GIN v14's own", sizeof(ncclGinProperties_v14_t), ncclSuccess, gin14->getGinProperties(to));
  FILL("RMA v16's own", sizeof(ncclRmaProperties_v16_t), ncclSuccess, rma16->getRmaProperties(NULL, to));
  FILL("RMA v17's own", sizeof(ncclRmaProperties_v16_t), ncclSuccess, rma17->getRmaProperties(NULL, to));
  FILL("net's number of devices", sizeof(int), ncclSuccess, net->devices(to));
  FILL("GIN's number of devices", sizeof(int), ncclSuccess, gin14->devices(to));
  FILL("GIN's error", sizeof(bool), ncclSuccess, gin14->queryLastError(NULL, to));
  check_gin15(library, (size_t)atoi(arguments[2]));
  SUCCEEDS(gin14->finalize(ginCtx));
  SUCCEEDS(net->finalize(ctx));
  printf("OK\n");
  return 0;
}
