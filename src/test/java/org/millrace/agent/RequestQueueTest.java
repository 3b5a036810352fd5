package org.millrace.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Requests of other threads run on the agent's thread, in order. Each request is answered once. */
class RequestQueueTest {

    private final RequestQueue requests = new RequestQueue();
    private final List<String> done = new ArrayList<>();

    private final class Attempts extends RequestQueue.Request {
        private final int needed;
        private final boolean answer;
        private int made;

        Attempts(int needed, boolean answer) {
            this.needed = needed;
            this.answer = answer;
        }

        @Override
        protected boolean attempt() {
            done.add("attempt");
            return ++made == needed && answer(answer);
        }
    }

    private int pass() {
        int work = requests.runOne();
        requests.answer();
        return work;
    }

    @Test
    void commandsRunOneInAPassAndBeforeLaterRequests() {
        requests.add(() -> done.add("first"));
        requests.add(() -> done.add("second"));
        Attempts request = requests.ask(new Attempts(1, true));
        assertEquals(1, pass());
        assertEquals(List.of("first"), done);
        assertEquals(1, pass());
        assertFalse(request.await(Duration.ZERO), "it is not asked yet");
        assertEquals(1, pass());
        assertEquals(List.of("first", "second", "attempt"), done);
        assertTrue(request.await(Duration.ZERO));
        assertEquals(0, pass());
    }

    @Test
    void theWokenThreadFindsTheCommand() {
        requests.wakeBy(() -> assertEquals(1, requests.runOne()));
        requests.add(() -> done.add("command"));
        assertEquals(List.of("command"), done);
    }

    @Test
    void aRequestIsAttemptedUntilItIsAnswered() {
        Attempts fulfilled = requests.ask(new Attempts(3, true));
        Attempts givenUp = requests.ask(new Attempts(2, false));
        for (int pass = 0; pass < 3; pass++) {
            assertFalse(fulfilled.await(Duration.ZERO));
            pass();
        }
        assertTrue(fulfilled.await(Duration.ZERO) && fulfilled.isFulfilled());
        assertTrue(givenUp.await(Duration.ZERO));
        assertFalse(givenUp.isFulfilled());
        pass();
        assertEquals(5, done.size(), "an answered request is not attempted again");
    }

    @Test
    void anInterruptIsKeptForLater() {
        Attempts request = requests.ask(new Attempts(1, true));
        pass();
        Thread.currentThread().interrupt();
        assertTrue(request.await(Duration.ofSeconds(30)));
        assertTrue(Thread.interrupted());
    }
}
