package org.millrace.cuda.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemoryLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/**
 * The arguments and the blocks of a launch match the kernel's image. Another number or order of arguments would cause
 * an illegal address on a GPU.
 */
class CopyKernelTest {

    private static final Pattern ENTRY = Pattern.compile("\\.entry copy_commands\\(([^)]*)\\)");
    private static final Pattern BLOCK = Pattern.compile("\\.maxntid (\\d+)");
    private static final Pattern PARAMETER = Pattern.compile("\\.param \\.u(\\d+)");

    /**
     * A launch call of the driver may return only when a kernel ends. The calling thread then stores results in memory
     * of the call, so this memory must stay allocated until then.
     */
    @Test
    void memoryOfALaunchThatDoesNotReturnIsNotFreed() throws InterruptedException {
        CountDownLatch held = new CountDownLatch(1);
        Thread launching = Thread.ofPlatform().daemon().start(() -> {
            try {
                held.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        AtomicInteger freed = new AtomicInteger();
        CopyKernel.freeAfter(launching, Duration.ofMillis(1), freed::incrementAndGet);
        assertEquals(0, freed.get());
        held.countDown();
        CopyKernel.freeAfter(launching, Duration.ofSeconds(30), freed::incrementAndGet);
        assertEquals(1, freed.get());
    }

    @Test
    void launchMatchesTheImage() throws IOException {
        String image;
        try (InputStream ptx = CopyKernel.class.getResourceAsStream("copy.ptx")) {
            image = new String(ptx.readAllBytes(), StandardCharsets.US_ASCII);
        }
        MatchResult entry = ENTRY.matcher(image).results().findFirst().orElseThrow();
        List<Long> declared =
                PARAMETER.matcher(entry.group(1)).results().map(bits -> Long.parseLong(bits.group(1))).toList();
        assertEquals(declared,
                Arrays.stream(CopyKernel.PARAMETERS).map(MemoryLayout::byteSize).map(n -> n * 8).toList());
        MatchResult block = BLOCK.matcher(image).results().findFirst().orElseThrow();
        assertEquals(CopyKernel.BLOCK_THREADS, Integer.parseInt(block.group(1)));
    }
}
