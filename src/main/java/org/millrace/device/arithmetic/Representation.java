package org.millrace.device.arithmetic;

/** How an element lies in memory, and which of Java's types computes with it. */
enum Representation {
    /** 8 bits, computed with as 32: widened with their sign, cut off when stored. */
    BYTE(1),
    /** 16 bits, computed with as the upper half of 32. */
    SHORT(2),
    /** 32 bits. */
    INT(4),
    /** 64 bits. */
    LONG(8),
    /** IEEE 754 binary16, computed with as binary32, rounded when stored. */
    FLOAT16(2),
    /** bfloat16, likewise. */
    BFLOAT16(2),
    /** IEEE 754 binary32. */
    FLOAT32(4),
    /** IEEE 754 binary64. */
    FLOAT64(8);

    private final int bytes;

    Representation(int bytes) {
        this.bytes = bytes;
    }

    /** Size of an element. */
    int bytes() {
        return bytes;
    }
}
