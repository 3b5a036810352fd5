package org.millrace.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class NativeHandleTest {

    private static final MemorySegment ADDRESS = MemorySegment.ofAddress(0x1234);

    @Test
    void isReleasedOnceAndImmediatelyIfUnused() {
        List<MemorySegment> released = new ArrayList<>();
        NativeHandle handle = new NativeHandle("thing", ADDRESS, released::add);
        assertEquals(ADDRESS, handle.enter());
        handle.exit();
        assertTrue(handle.close());
        assertFalse(handle.close());
        handle.closeWithin(0);
        assertEquals(List.of(ADDRESS), released);
        assertEquals("thing is closed", assertThrows(IllegalStateException.class, handle::enter).getMessage());
        assertEquals(List.of(ADDRESS), released);
    }

    @Test
    void theLastUserReleasesIt() {
        List<MemorySegment> released = new ArrayList<>();
        NativeHandle handle = new NativeHandle("thing", ADDRESS, released::add);
        handle.enter();
        handle.enter();
        assertTrue(handle.close());
        assertThrows(IllegalStateException.class, handle::enter);
        handle.exit();
        assertEquals(List.of(), released);
        handle.exit();
        assertEquals(List.of(ADDRESS), released);
    }

    @Test
    void aForcedCloseDoesNotWaitForeverAndReleasesOnce() {
        List<MemorySegment> released = new ArrayList<>();
        NativeHandle handle = new NativeHandle("thing", ADDRESS, released::add);
        handle.enter();
        handle.closeWithin(1_000_000);
        assertEquals(List.of(ADDRESS), released);
        handle.exit();
        assertEquals(List.of(ADDRESS), released);
    }

    @Test
    void aPendingHandleIsReadyWhenItsAddressIsWritten() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment slot = arena.allocate(ValueLayout.ADDRESS);
            List<MemorySegment> released = new ArrayList<>();
            NativeHandle handle = NativeHandle.pending("thing", slot, released::add);
            assertFalse(handle.isMade());
            assertTrue(assertThrows(IllegalStateException.class, handle::enter).getMessage().contains("not ready"));
            slot.set(ValueLayout.ADDRESS, 0, ADDRESS);
            assertEquals(ADDRESS, handle.enter());
            handle.exit();
            handle.close();
            assertEquals(List.of(ADDRESS), released);
            NativeHandle never = NativeHandle.pending("thing", arena.allocate(ValueLayout.ADDRESS), released::add);
            never.close();
            assertEquals(1, released.size(), "nothing to give back");
        }
    }

    /**
     * Several threads use a handle while another thread closes it, many times. The release happens exactly once, after
     * the last use. No use begins after the release.
     */
    @Test
    void isNeverReleasedWhileItIsUsed() throws Exception {
        int users = 3;
        AtomicInteger entered = new AtomicInteger();
        AtomicInteger wrong = new AtomicInteger();
        AtomicLong released = new AtomicLong();
        int rounds = 3000;
        NativeHandle[] handles = new NativeHandle[rounds];
        AtomicInteger[] inside = new AtomicInteger[rounds];
        for (int i = 0; i < rounds; i++) {
            AtomicInteger count = new AtomicInteger();
            inside[i] = count;
            handles[i] = new NativeHandle("thing", ADDRESS, address -> {
                released.incrementAndGet();
                // From here on the handle is released, so no thread may still use the handle.
                if (count.getAndSet(-1_000_000) != 0) {
                    wrong.incrementAndGet();
                }
            });
        }
        CyclicBarrier start = new CyclicBarrier(users + 1);
        List<Thread> threads = new ArrayList<>();
        for (int u = 0; u < users; u++) {
            threads.add(Thread.ofPlatform().start(() -> {
                for (int i = 0; i < rounds; i++) {
                    await(start);
                    use(handles[i], inside[i], entered, wrong);
                }
            }));
        }
        threads.add(Thread.ofPlatform().start(() -> {
            for (int i = 0; i < rounds; i++) {
                await(start);
                for (int spin = 0; spin < i % 50; spin++) {
                    Thread.onSpinWait();
                }
                handles[i].close();
            }
        }));
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(rounds, released.get());
        assertEquals(0, wrong.get());
        assertTrue(entered.get() > 0, "no user ever got in, so nothing was tried");
    }

    private static void use(NativeHandle handle, AtomicInteger inside, AtomicInteger entered, AtomicInteger wrong) {
        for (int again = 0; again < 20; again++) {
            try {
                handle.enter();
            } catch (IllegalStateException closed) {
                return;
            }
            if (inside.incrementAndGet() <= 0) {
                wrong.incrementAndGet();
            }
            entered.incrementAndGet();
            inside.decrementAndGet();
            handle.exit();
        }
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (Exception broken) {
            throw new AssertionError(broken);
        }
    }
}
