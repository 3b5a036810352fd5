package org.millrace.trace;

import static org.millrace.trace.CommunicatorFields.OPERATION_BYTES;

/**
 * Operations that have not ended, and whose entries in the file are others' by now: a program may enqueue thousands
 * ahead. Grows to {@value #MOST} of them; what is further ahead is not remembered. Used under the communicator's lock.
 */
final class OperationBacklog {

    static final int MOST = 1 << 14;
    private static final int LEAST = 64;
    private static final int WORDS = OPERATION_BYTES / Long.BYTES;

    private long[] entries = {};
    /** Of each entry, plus 1; 0 if it is empty. */
    private long[] numbers = {};

    /** Remembers what lies at an address, unless more than can be remembered have not ended. */
    void add(long operation, long ended, long address) {
        while (operation - ended >= numbers.length) {
            if (numbers.length == MOST) {
                return;
            }
            grow();
        }
        int at = at(operation);
        numbers[at] = operation + 1;
        for (int word = 0; word < WORDS; word++) {
            entries[at * WORDS + word] = TraceMemory.get(address + (long) word * Long.BYTES);
        }
    }

    boolean has(long operation) {
        return numbers.length > 0 && numbers[at(operation)] == operation + 1;
    }

    /** Writes one that it has to an address. */
    void store(long operation, long address) {
        for (int word = 0; word < WORDS; word++) {
            TraceMemory.set(address + (long) word * Long.BYTES, entries[at(operation) * WORDS + word]);
        }
    }

    private int at(long operation) {
        return (int) operation & numbers.length - 1;
    }

    private void grow() {
        long[] oldNumbers = numbers;
        long[] oldEntries = entries;
        numbers = new long[Math.max(LEAST, 2 * oldNumbers.length)];
        entries = new long[numbers.length * WORDS];
        for (int i = 0; i < oldNumbers.length; i++) {
            if (oldNumbers[i] != 0) {
                int at = at(oldNumbers[i] - 1);
                numbers[at] = oldNumbers[i];
                System.arraycopy(oldEntries, i * WORDS, entries, at * WORDS, WORDS);
            }
        }
    }
}
