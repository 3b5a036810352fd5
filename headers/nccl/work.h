/*
 * Work that NCCL's host side passes to its kernels, as of 2.30.7 (facts: device.h of that release). NCCL declares
 * bit-fields in these structs. Here they are the bytes or words that hold them, with the masks and shifts of their
 * bits. x86-64 and AArch64 fill bit-fields from bit 0 upward.
 */
#ifndef MILLRACE_NCCL_WORK_H
#define MILLRACE_NCCL_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAXCHANNELS 64
#define NCCL_MAX_NTHREADS 640
#define NCCL_MAX_DIRECT_ARITY 7
#define NCCL_MAX_TREE_ARITY 3
#define NCCL_MAX_NVLS_ARITY 32
#define NCCL_MAX_NVLS_TREE_ARITY 3
#define NCCL_MAX_DEV_WORK_BATCH_BYTES 1024
#define NCCL_MAX_DEV_WORK_P2P_PER_BATCH 8

typedef enum ncclDevRedOp_t {
  ncclDevSum = 0,
  ncclDevProd = 1,
  ncclDevMinMax = 2,
  ncclDevPreMulSum = 3,
  ncclDevSumPostDiv = 4,
  ncclNumDevRedOps = 5
} ncclDevRedOp_t;

/* ncclDevWorkBatch's work type. It also selects the struct of its work items from the structs below. */
typedef enum ncclDevWorkType {
  ncclDevWorkTypeP2p = 0,
  ncclDevWorkTypeColl = 1,
  ncclDevWorkTypeCollReg = 2
} ncclDevWorkType;

/* Location of the work items. */
typedef enum ncclDevWorkStorageType {
  ncclDevWorkStorageTypeArgs = 0,
  ncclDevWorkStorageTypeFifo = 1,
  ncclDevWorkStorageTypePersistent = 2
} ncclDevWorkStorageType;

/* --- one send and one receive ------------------------------------------------------------ */

#define MILLRACE_P2P_SEND_LL 0x01
#define MILLRACE_P2P_RECV_LL 0x02
#define MILLRACE_P2P_SEND_NET_REGISTERED 0x04
#define MILLRACE_P2P_RECV_NET_REGISTERED 0x08
#define MILLRACE_P2P_SEND_IPC_REGISTERED 0x10
#define MILLRACE_P2P_RECV_IPC_REGISTERED 0x20
#define MILLRACE_P2P_PROFILED 0x40

typedef struct ncclDevWorkP2p {
  void *sendAddr;
  void *recvAddr;
  size_t sendBytes;
  size_t recvBytes;
  int sendRank;
  int recvRank;
  uint8_t nP2pChannels;
  uint8_t channelBase;
  uint8_t nSendChannels; /* 0: nothing to send; likewise below */
  uint8_t nRecvChannels;
  uint8_t sendChunkSize_u32fp8; /* a size in NCCL's 8-bit floating format */
  uint8_t recvChunkSize_u32fp8;
  uint8_t p2pFlags; /* MILLRACE_P2P_... */
} __attribute__((aligned(16))) ncclDevWorkP2p;

/* --- one collective ---------------------------------------------------------------------- */

#define MILLRACE_COLL_RED_OP_ARG_IS_POINTER 0x01
#define MILLRACE_COLL_REGISTERED 0x02
#define MILLRACE_COLL_NET_REGISTERED 0x04
#define MILLRACE_COLL_ONE_NODE 0x08
#define MILLRACE_COLL_DIRECT_SHIFT 4
#define MILLRACE_COLL_DIRECT_BITS 2
#define MILLRACE_COLL_ONE_RANK_PER_NODE 0x40
#define MILLRACE_COLL_PROFILED 0x80

/*
 * Bytes spread continuously over the channels. The first and the last channel may get fewer. chunkGrains: three counts
 * of 21 bits, for the first, middle and last channels, in that order.
 */
#define MILLRACE_CBD_CHUNK_GRAINS_BITS 21
typedef struct ncclDevWorkCbd {
  size_t countLo;
  size_t countMid;
  size_t countHi;
  uint64_t chunkGrains;
} ncclDevWorkCbd;

/* CollNet. Every channel gets the same number. */
typedef struct ncclDevWorkCollnet {
  size_t count;
  uint32_t chunkCount;
} ncclDevWorkCollnet;

typedef union ncclDevWorkSchedule {
  ncclDevWorkCbd cbd;
  ncclDevWorkCollnet collnet;
} ncclDevWorkSchedule;

typedef struct ncclDevWorkColl {
  uint8_t channelLo;
  uint8_t channelHi; /* inclusive */
  uint8_t nWarps;
  uint8_t collFlags; /* MILLRACE_COLL_... */
  uint32_t root;
  uint8_t pad1[12]; /* since 2.30, and the other paddings */
  void *recvbuff;
  void *sendbuff;
  uint64_t pad0;
  uintptr_t sendbuffOffset;
  uintptr_t recvbuffOffset;
  uintptr_t *sendbuffRmtAddrs;
  uintptr_t *recvbuffRmtAddrs;
  ncclDevWorkSchedule schedule;
  uint64_t redOpArg;
  uint8_t pad2[8];
} __attribute__((aligned(16))) ncclDevWorkColl;

typedef struct ncclDevWorkCollReg {
  ncclDevWorkColl coll;
  void *dnInputs[NCCL_MAX_DIRECT_ARITY + 1];
  void *dnOutputs[NCCL_MAX_DIRECT_ARITY + 1];
  void *upOutputs[NCCL_MAX_DIRECT_ARITY + 1];
} __attribute__((aligned(16))) ncclDevWorkCollReg;

/* --- batches and the kernel's argument --------------------------------------------------- */

/* Bits of ncclDevWorkBatch.flags. A jump of 0 ends the channel's list. */
#define MILLRACE_BATCH_NEXT_JUMP_BITS 14
#define MILLRACE_BATCH_NEXT_EXTENDS 0x4000
#define MILLRACE_BATCH_WORK_TYPE_SHIFT 15
#define MILLRACE_BATCH_WORK_TYPE_BITS 2
#define MILLRACE_BATCH_FUNC_ID_SHIFT 17
#define MILLRACE_BATCH_FUNC_ID_BITS 15

/* Bit i of offsetBitset: a work item lies at offsetBase + i * (size of the item). */
typedef struct ncclDevWorkBatch {
  uint32_t flags;
  uint32_t offsetBase;
  uint64_t offsetBitset;
} __attribute__((aligned(16))) ncclDevWorkBatch;

typedef struct ncclDevKernelArgs {
  void *comm;
  uint64_t channelMask;
  uint8_t workStorageType; /* ncclDevWorkStorageType */
  uint32_t workMask;
  void *workBuf;
} __attribute__((aligned(16))) ncclDevKernelArgs;

/* --- the communicator in kernels, and their counters -------------------------------------- */

#define MAX_PROFILER_EVENTS_PER_CHANNEL 64

typedef struct ncclDevProfilerSlot {
  uint64_t counter;   /* number of the work on its channel, from 1 on; stored after the timestamp */
  uint64_t timestamp; /* ns of the device's global timer */
} ncclDevProfilerSlot;

/* Work number n lies in slot n % MAX_PROFILER_EVENTS_PER_CHANNEL. */
typedef struct ncclDevProfiler {
  ncclDevProfilerSlot data[MAX_PROFILER_EVENTS_PER_CHANNEL];
} ncclDevProfiler;

/* This rank's neighbors, one struct for each algorithm. Ranks that do not exist are -1. */
typedef struct ncclRing {
  int prev;
  int next;
  int *userRanks;   /* all ranks in the ring's order, from this one on */
  int *rankToIndex; /* since 2.29: the inverse of userRanks */
  int index;        /* this rank's position in the ring */
} ncclRing;

typedef struct ncclTree {
  int depth;
  int up;
  int down[NCCL_MAX_TREE_ARITY];
} ncclTree;

typedef struct ncclDirect {
  int depth;
  int out; /* the network: nRanks */
  int nHeads;
  int headRank;
  int shift;
  int heads[NCCL_MAX_DIRECT_ARITY + 1];
  int up[NCCL_MAX_DIRECT_ARITY];
  int down[NCCL_MAX_DIRECT_ARITY];
} ncclDirect;

typedef struct ncclNvls {
  int out;
  int nHeads;
  int headRank;
  int up[NCCL_MAX_NVLS_ARITY];
  int down;
  int treeUp;
  int treeDown[NCCL_MAX_NVLS_TREE_ARITY];
} ncclNvls;

/* A kernel's end of a connection to a peer. The memory and the step belong to one direction. */
typedef struct ncclConnInfo {
  char *buffs[NCCL_NUM_PROTOCOLS];
  void *mhandles[NCCL_NUM_PROTOCOLS];
  uint64_t *tail; /* in ncclRecvMem */
  uint64_t *head; /* in ncclSendMem */
  int flags;
  int shared;   /* whether peers share the Simple buffer */
  int stepSize; /* size of a slot of the Simple buffer in bytes */
  void **ptrExchange;
  uint64_t *redOpArgExchange;
  void *connFifo; /* ncclConnFifo of the release; null without a proxy */
  uint64_t step;  /* kernels load it when they begin, and store it when they end */
  uint64_t llLastCleaning;
  ncclNetDeviceHandle_t netDeviceHandle;
} ncclConnInfo;

/* All connections of a channel to a peer: the first of each direction for collectives, the other for send and recv. */
typedef struct ncclDevChannelPeer {
  ncclConnInfo send[2];
  ncclConnInfo recv[2];
} ncclDevChannelPeer;

typedef struct ncclDevChannel {
  ncclDevChannelPeer **peers; /* one per rank */
  ncclRing ring;
  ncclTree tree;
  ncclTree collnetChain;
  ncclDirect collnetDirect;
  ncclNvls nvls;
  uint32_t *workFifoDone;
  uint64_t workCounter;
} __attribute__((aligned(16))) ncclDevChannel;

typedef struct ncclKernelComm {
  int rank;
  int nRanks;
  int node;
  int nNodes;
  int buffSizes[NCCL_NUM_PROTOCOLS];
  int p2pChunkSize;
  bool p2pCrossClique; /* since 2.30; padding before */
  int isAllNvlink;
  int *collNetDenseToUserRank;
  uint32_t *abortFlag; /* the host sets it, kernels poll it */
  void *channels;      /* ncclDevChannel[MAXCHANNELS] */
  int *rankToLocalRank;
  ncclDevProfiler *workStarted;   /* one per channel; likewise below */
  ncclDevProfiler *workCompleted;
} ncclKernelComm;

#endif
