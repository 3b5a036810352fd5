/*
 * A kernel that stays on a GPU for a while and makes copies that the host requests. It copies between GPUs, and between
 * a GPU and pinned memory. One warp of its first block reads the commands, which lie in the host's memory, so that no
 * other warp polls across PCIe. It makes the shortest copies itself, in half the time that a copy engine needs to start
 * and to answer. It gives the other copies to workers of four warps each. They make many copies at once, and a copy
 * engine makes one after the other. org.millrace.cuda.driver.CopyKernel is its host.
 *
 * The PTX is checked in, in a version that drivers for CUDA 11.5 and newer read. After a change:
 *
 *   nvcc -ptx -arch=compute_75 -I headers -o copy.ptx src/main/cuda/copy.cu
 *   sed "s|^[.]version .*|.version 7.5|" copy.ptx >src/main/resources/org/millrace/cuda/driver/copy.ptx
 */
#include "millrace/copy_mailbox.h"

typedef unsigned u32;
typedef unsigned long long u64;
typedef ulonglong2 Line;

enum { ALL = 0xffffffff, LANES = 32 };
/* Number of loads that each lane has in flight at once. They cover a whole copy. */
enum { LOADS = 4 };
/* Number of commands that a look reads, one for each lane. The reads across PCIe are in flight at once. */
enum { LOOK_COMMANDS = LANES };
/* Number of looks at the commands between two reads of the time. */
enum { LOOKS = 8 };
/*
 * Maximum number of copies that a worker makes between two reports, if others already wait for it. A fence takes as
 * long as a copy.
 */
enum { COPIES_AT_ONCE = 8 };
/*
 * Time limit for the arrival of a launch's workers, in nanoseconds. A launch gives up if its workers find no room,
 * so that no other work waits behind it. The host then launches again.
 */
enum { ARRIVAL_NANOS = 100000 };
/*
 * Threads of a worker, workers of a block, and the number of blocks of one multiprocessor, which determines the
 * registers of a thread. Large blocks leave more multiprocessors to the program: a block of a matrix product often
 * finds no room beside a block of this kernel. But a block of half the registers still fits beside many blocks of
 * programs.
 */
enum { WORKER_THREADS = 128, WORKERS_IN_BLOCK = 4, BLOCK_THREADS = WORKER_THREADS * WORKERS_IN_BLOCK };
enum { BLOCKS_BY_REGISTERS = 2 };
static_assert(MILLRACE_COPY_WORKERS % WORKERS_IN_BLOCK == 0, "each block has its workers");

/*
 * A copy for a worker. It is complete when its number is stored, which is the ordinal among the copies given to this
 * worker.
 */
struct Work {
    u64 to;
    u64 from;
    u64 bytes;
    u32 number;
    u32 ordered; // whether this copy must not become visible before earlier copies of this worker
};

/*
 * Maximum number of launches that wait for room, each in a stream of its own. One may queue behind a kernel of the
 * program that does not end without copies.
 */
enum { STREAMS = 8 };

/* Lies in the GPU's memory, zeroed once. The host knows its size (CopyKernel). */
struct Workers {
    Work works[MILLRACE_COPY_WORKERS][MILLRACE_COPY_GIVEN];
    u32 given[MILLRACE_COPY_WORKERS]; // number of copies given to each worker; the first block writes it
    u32 taken[MILLRACE_COPY_WORKERS]; // number of copies that each worker has made; the worker writes it at its end
    u32 owned;                        // 1 while a launch serves the host, or while its workers have not ended
    u32 ended;                        // number of ended workers of that launch
    u32 arrived[STREAMS];             // number of arrived workers, of all launches of a stream
    // for each stream: twice the number of the last launch that has decided, plus 1 if this launch serves the host
    u32 chosen[STREAMS];
    u32 left[STREAMS];                // for each stream: number of the last launch that gives no more copies
};

/*
 * Loads half a command. Pairs with the host's releases of its words. Data to be copied was stored before these
 * releases. A fence after a relaxed load would wait for all stores of the warp, which takes as long as the load.
 */
static __device__ Line load_half(const uint64_t *words) {
    Line value;
    asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(value.x), "=l"(value.y) : "l"(words) : "memory");
    return value;
}

static __device__ bool is_missing(Line half, u32 number) {
    return half.x >> MILLRACE_COPY_NUMBER_SHIFT != (unsigned short)number || half.y >> MILLRACE_COPY_NUMBER_SHIFT != (unsigned short)number;
}

/*
 * Returns the even or odd halves of the commands. Each lane of first holds one half of the first 16 commands, and each
 * lane of second one half of the others. All lanes call it.
 */
static __device__ Line half_of(Line first, Line second, u32 lane, u32 odd) {
    u32 from = lane * 2 % LANES + odd;
    u64 x = __shfl_sync(ALL, first.x, from), y = __shfl_sync(ALL, first.y, from);
    u64 upper_x = __shfl_sync(ALL, second.x, from), upper_y = __shfl_sync(ALL, second.y, from);
    Line half;
    half.x = lane < LANES / 2 ? x : upper_x;
    half.y = lane < LANES / 2 ? y : upper_y;
    return half;
}

static __device__ u32 load_acquire_host(const uint32_t *word) {
    u32 value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

static __device__ u32 load_acquire_here(const u32 *word) {
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

static __device__ void store_release_here(u32 *word, u32 value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

/* Makes all earlier copies visible to all threads before all later copies. */
static __device__ void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

static __device__ void store(uint32_t *word, u32 value) { asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory"); }

/* Stores a value with release. A thread that reads the value sees all earlier stores of the warp. */
static __device__ void store_release(uint32_t *word, u32 value) {
    fence();
    store(word, value);
}

static __device__ u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Volatile, because another GPU or the host has written the data. */
template <typename T> static __device__ T get(u64 from) { return *(const volatile T *)from; }
template <typename T> static __device__ void put(u64 to, T value) { *(volatile T *)to = value; }

template <> __device__ Line get<Line>(u64 from) {
    Line value;
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(value.x), "=l"(value.y) : "l"(from) : "memory");
    return value;
}

template <> __device__ void put<Line>(u64 to, Line value) {
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(value.x), "l"(value.y) : "memory");
}

template <typename T> static __device__ void copy(u64 to, u64 from, u32 bytes, u32 lane) {
    u32 count = bytes / sizeof(T);
    T values[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        if (i * LANES + lane < count) {
            values[i] = get<T>(from + (i * LANES + lane) * sizeof(T));
        }
    }
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        if (i * LANES + lane < count) {
            put<T>(to + (i * LANES + lane) * sizeof(T), values[i]);
        }
    }
}

/*
 * Makes a copy. The host requests no more bytes than LOADS of each lane cover. A number of 4 or 8 bytes never becomes
 * visible in part, so a poller need not read it twice.
 */
static __device__ void carry_out(u64 to, u64 from, u32 bytes, u32 lane) {
    u32 alignment = (u32)to | (u32)from | bytes;
    if (alignment % sizeof(Line) == 0) {
        copy<Line>(to, from, bytes, lane);
    } else if (alignment % sizeof(u64) == 0) {
        copy<u64>(to, from, bytes, lane);
    } else if (alignment % sizeof(u32) == 0) {
        copy<u32>(to, from, bytes, lane);
    } else {
        copy<unsigned char>(to, from, bytes, lane);
    }
}

static __device__ u64 whole(u64 low, u64 high) { return low << 16 >> 16 | high << 48; }

/* A command. Each lane holds one command and gives it to a worker. */
struct Command {
    u64 to;
    u64 from;
    u32 bytes;
    u32 worker; // number of the worker, from 1; 0 if the first block copies, or if the lane has no command
    bool ordered;
};

/*
 * Gives the commands of the lanes from first to before end to workers, after the copies that the warp has made.
 * Commands for one worker keep the order of the lanes. The host gives a worker no more commands than it has room for.
 * All lanes call it.
 */
static __device__ void give(Workers *workers, Command command, u32 first, u32 end, u32 lane) {
    u32 worker = lane >= first && lane < end ? command.worker : 0;
    u32 same = __match_any_sync(ALL, worker);
    u32 before = same & (1u << lane) - 1;
    volatile u32 *given = &workers->given[worker > 0 ? worker - 1 : 0];
    u32 number = *given + __popc(before) + 1;
    __syncwarp(); // all lanes have read given before one lane changes it
    if (worker > 0) {
        Work *work = &workers->works[worker - 1][number % MILLRACE_COPY_GIVEN];
        work->to = command.to;
        work->from = command.from;
        work->bytes = command.bytes;
        work->ordered = command.ordered;
        if (before == 0) {
            *given = number + __popc(same) - 1;
        }
        store_release_here(&work->number, number);
    }
    __syncwarp();
}

/*
 * Result of a look: the number of commands, whether the warp has made copies itself, and whether a command extends the
 * kernel's stay.
 */
struct Look {
    u32 found;
    bool copied;
    bool extends;
};

/* Reads the available commands from number on, up to LOOK_COMMANDS. Executes them or gives them to workers. */
static __device__ Look look(const millraceCopyMailbox *mailbox, Workers *workers, u32 number, u32 lane) {
    u32 mine = number + lane / 2;
    Line first = load_half(&mailbox->commands[mine % MILLRACE_COPY_COMMANDS].to + lane % 2 * 2);
    u32 lost = __ballot_sync(ALL, is_missing(first, mine));
    Look none = {0, false, false};
    if (lost & 3) {
        return none;
    }
    Line second = first;
    if (lost == 0) { // many commands are available; the others are read only in this case
        mine += LANES / 2;
        second = load_half(&mailbox->commands[mine % MILLRACE_COPY_COMMANDS].to + lane % 2 * 2);
    }
    __syncwarp(); // makes the words that one lane has acquired visible to the other lanes
    u32 more = lost == 0 ? __ballot_sync(ALL, is_missing(second, mine)) : ALL;
    u32 end = lost != 0 ? (__ffs(lost) - 1) / 2 : more != 0 ? LANES / 2 + (__ffs(more) - 1) / 2 : LOOK_COMMANDS;
    Line addresses = half_of(first, second, lane, 0);
    Line rest = half_of(first, second, lane, 1);
    Command command;
    command.to = whole(addresses.x, rest.x);
    command.from = whole(addresses.y, rest.x >> MILLRACE_COPY_FROM_SHIFT);
    command.bytes = (u32)rest.y;
    command.worker = lane < end ? (unsigned char)(rest.y >> MILLRACE_COPY_WORKER_SHIFT) : 0;
    command.ordered = rest.y >> MILLRACE_COPY_ORDERED_SHIFT & 1;
    u32 own = __ballot_sync(ALL, lane < end && command.worker == 0);
    bool copied = false;
    for (u32 i = 0; i < end;) {
        if (copied) { // publishes each lane's stores before later stores
            fence();
            __syncwarp();
        }
        copied = own >> i & 1;
        if (copied) {
            carry_out(__shfl_sync(ALL, command.to, i), __shfl_sync(ALL, command.from, i), __shfl_sync(ALL, command.bytes, i), lane);
            i++;
        } else {
            u32 next = own >> i ? i + __ffs(own >> i) - 1 : end;
            give(workers, command, i, next, lane);
            i = next;
        }
    }
    bool extends = lane < end && rest.y >> MILLRACE_COPY_EXTENDS_SHIFT & 1;
    Look all = {end, own != 0, __any_sync(ALL, extends) != 0};
    return all;
}

/* Reads the number of the thread again at each use. On sm_90 a copy of it in a register would spill others. */
static __device__ u32 thread() {
    u32 number;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(number));
    return number;
}

/* Copies with all threads of a worker. The loads of one pass are in flight at once. */
template <typename T> static __device__ void copy_by_worker(u64 to, u64 from, u64 bytes) {
    const u32 loads = 4;
    u64 count = bytes / sizeof(T);
    for (u64 first = thread() % WORKER_THREADS; first < count; first += loads * WORKER_THREADS) {
        T values[loads];
#pragma unroll
        for (u32 i = 0; i < loads; i++) {
            if (first + i * WORKER_THREADS < count) {
                values[i] = get<T>(from + (first + i * WORKER_THREADS) * sizeof(T));
            }
        }
#pragma unroll
        for (u32 i = 0; i < loads; i++) {
            if (first + i * WORKER_THREADS < count) {
                put<T>(to + (first + i * WORKER_THREADS) * sizeof(T), values[i]);
            }
        }
    }
}

/* Copies whole elements. Returns the number of remaining bytes, which lie after them. */
template <typename T> static __device__ u64 copy_whole(u64 *to, u64 *from, u64 bytes) {
    u64 body = bytes / sizeof(T) * sizeof(T);
    copy_by_worker<T>(*to, *from, body);
    *to += body;
    *from += body;
    return bytes - body;
}

/* Number of this thread's worker in its block. */
static __device__ u32 slot() { return thread() / WORKER_THREADS; }

static __device__ bool leads() { return thread() % WORKER_THREADS == 0; }

template <int BARRIER> static __device__ void join_at() { asm volatile("bar.sync %0, %1;" ::"n"(BARRIER), "n"((int)WORKER_THREADS) : "memory"); }

/*
 * Waits for all threads of this worker. Each worker of a block has its own barrier; barrier 0 is __syncthreads. The
 * barriers are constants, because a block with a barrier in a register reserves all 16 barriers.
 */
static __device__ void join() {
    static_assert(WORKERS_IN_BLOCK == 4, "each worker has a barrier");
    switch (slot()) {
    case 0: return join_at<1>();
    case 1: return join_at<2>();
    case 2: return join_at<3>();
    default: return join_at<4>();
    }
}

/* Runs a worker. The worker ends when the first block gives no more copies, and when it has made all given copies. */
static __device__ void make_copies(millraceCopyMailbox *mailbox, Workers *workers, u32 me, u32 stream, u32 launch) {
    __shared__ volatile Work shared[WORKERS_IN_BLOCK];
    if (leads()) {
        atomicAdd(&workers->arrived[stream], 1);
        u32 chosen;
        do {
            chosen = load_acquire_here(&workers->chosen[stream]);
        } while (chosen >> 1 != launch);
        shared[slot()].number = chosen & 1;
    }
    join();
    if (!shared[slot()].number) {
        return;
    }
    join(); // all threads have read shared, so it may be written again
    u32 number = workers->taken[me];
    u32 told = number; // number of copies that the host knows of
    bool more = false; // whether the copy after the next one was available, too
    while (true) {
        if (leads()) {
            const Work *work = &workers->works[me][(number + 1) % MILLRACE_COPY_GIVEN];
            bool there = load_acquire_here(&work->number) == number + 1;
            while (!there) {
                // After the launch has left, every copy that it gave is available.
                bool last = load_acquire_here(&workers->left[stream]) == launch;
                there = load_acquire_here(&work->number) == number + 1;
                if (last) {
                    break;
                }
            }
            shared[slot()].number = there;
            if (there) {
                shared[slot()].to = work->to;
                shared[slot()].from = work->from;
                shared[slot()].bytes = work->bytes;
                more = ((const volatile Work *)workers->works[me])[(number + 2) % MILLRACE_COPY_GIVEN].number == number + 2;
                if (work->ordered && told != number) {
                    fence();
                }
            }
        }
        join();
        if (!shared[slot()].number) {
            break;
        }
        u64 to = shared[slot()].to, from = shared[slot()].from, bytes = shared[slot()].bytes;
        u64 alignment = to | from;
        if (alignment % sizeof(Line) == 0) {
            bytes = copy_whole<Line>(&to, &from, bytes);
        }
        if (alignment % sizeof(u64) == 0) { // aligned numbers of 8 and of 4 bytes never become visible in part
            bytes = copy_whole<u64>(&to, &from, bytes);
        }
        if (alignment % sizeof(u32) == 0) {
            bytes = copy_whole<u32>(&to, &from, bytes);
        }
        copy_whole<unsigned char>(&to, &from, bytes);
        number++;
        join(); // the fence of the first thread covers the stores of all threads; shared may be written again
        if (leads() && (!more || number - told == COPIES_AT_ONCE)) {
            store_release(&mailbox->copied[me], number);
            told = number;
        }
    }
    if (leads()) {
        workers->taken[me] = number;
        __threadfence(); // pairs with the first block's acquire of ended: taken is visible
        atomicAdd(&workers->ended, 1);
    }
}

/*
 * Decides whether this launch serves the host. One lane calls it. The host must wait for a launch, no other launch may
 * serve it, and all workers must be there. A late launch leaves at once. A launch leaves after a time limit if its
 * workers do not arrive. A launch whose workers are there waits until the workers of the previous launch have made
 * their last copies: other work waits for these copies anyway.
 */
static __device__ bool is_chosen(millraceCopyMailbox *mailbox, Workers *workers, u32 stream, u32 launch) {
    u32 all = launch * (gridDim.x - 1) * WORKERS_IN_BLOCK;
    bool mine = false;
    u64 begin = nanoseconds();
    bool there = false; // whether all workers have arrived
    while (!mine && load_acquire_host(&mailbox->state) == MILLRACE_COPY_ABSENT && (there || nanoseconds() - begin < ARRIVAL_NANOS)) {
        there = load_acquire_here(&workers->arrived[stream]) == all;
        if (there && atomicCAS(&workers->owned, 0, 1) == 0) {
            // This fence pairs with the previous launch's release of owned: the counts of that launch and of its workers
            // are visible.
            fence();
            // pairs with the host's release of the state: done is visible
            mine = load_acquire_host(&mailbox->state) == MILLRACE_COPY_ABSENT;
            if (!mine) {
                store_release_here(&workers->owned, 0);
            }
        }
    }
    store_release_here(&workers->chosen[stream], launch << 1 | mine);
    return mine;
}

/*
 * The first block executes commands in their order. It leaves when no command that extends the stay has arrived for
 * linger nanoseconds, or when life nanoseconds have passed. It then stores that it is leaving, looks once more, and
 * ends. A host that posts a command and then reads no leaving state knows that the kernel will see the command. The
 * first block begins when all workers are there, because a copy for a worker must not wait for the end of another
 * kernel. A stream's launches are counted from 1, modulo 2^31.
 */
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_BY_REGISTERS)
    copy_commands(millraceCopyMailbox *mailbox, u64 linger, u64 life, Workers *workers, u32 stream, u32 launch) {
    if (blockIdx.x > 0) {
        make_copies(mailbox, workers, (blockIdx.x - 1) * WORKERS_IN_BLOCK + threadIdx.x / WORKER_THREADS, stream, launch);
        return;
    }
    if (threadIdx.x >= LANES) {
        return;
    }
    u32 lane = threadIdx.x;
    if (!__shfl_sync(ALL, lane == 0 && is_chosen(mailbox, workers, stream, launch), 0)) {
        return;
    }
    // The host has posted no command since it began to wait for this launch.
    u32 number = __shfl_sync(ALL, load_acquire_host(&mailbox->done), 0);
    u64 born = nanoseconds();
    u64 busy = born;
    bool extended = false; // whether a command since the time busy extends the stay
    bool leaving = false;
    if (lane == 0) {
        store(&mailbox->state, MILLRACE_COPY_PRESENT | stream << MILLRACE_COPY_STREAM_SHIFT);
    }
    for (u32 looks = 1;; looks++) {
        Look by = look(mailbox, workers, number, lane);
        if (by.found > 0) {
            number += by.found;
            extended |= by.extends;
            __syncwarp(); // the fence of lane 0 covers the stores of all lanes
            if (lane == 0 && by.copied) {
                store_release(&mailbox->done, number);
            } else if (lane == 0) {
                store(&mailbox->done, number); // the places of the commands are free, because their words were read
            }
        } else if (leaving) {
            break;
        }
        if (looks % LOOKS == 0 && !leaving) {
            u64 now = nanoseconds();
            busy = extended ? now : busy;
            extended = false;
            if (__shfl_sync(ALL, now - busy >= linger || now - born >= life, 0)) {
                leaving = true;
                if (lane == 0) {
                    store(&mailbox->state, MILLRACE_COPY_LEAVING);
                }
                __syncwarp();
                // pairs with the host's full fence between its store of a command and its read of the state
                asm volatile("fence.sc.sys;" ::: "memory");
            }
        }
    }
    if (lane == 0) {
        store_release_here(&workers->left[stream], launch);
        store_release(&mailbox->state, MILLRACE_COPY_GONE);
        // the next launch's workers continue from the counts of these workers
        while (load_acquire_here(&workers->ended) != (gridDim.x - 1) * WORKERS_IN_BLOCK) {
        }
        workers->ended = 0;
        store_release_here(&workers->owned, 0);
    }
}
