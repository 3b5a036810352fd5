package org.millrace;

/**
 * Element types of collective operations. Order, codes and sizes are the same as in {@code ncclDataType_t} in NCCL
 * 2.28's {@code nccl.h}.
 */
public enum DataType {
    /** Signed 8-bit integer. */
    INT8(0, 1, false, "int8"),
    /** Unsigned 8-bit integer. */
    UINT8(1, 1, false, "uint8"),
    /** Signed 32-bit integer. */
    INT32(2, 4, false, "int32"),
    /** Unsigned 32-bit integer. */
    UINT32(3, 4, false, "uint32"),
    /** Signed 64-bit integer. */
    INT64(4, 8, false, "int64"),
    /** Unsigned 64-bit integer. */
    UINT64(5, 8, false, "uint64"),
    /** IEEE 754 binary16. */
    FLOAT16(6, 2, true, "half"),
    /** IEEE 754 binary32. */
    FLOAT32(7, 4, true, "float"),
    /** IEEE 754 binary64. */
    FLOAT64(8, 8, true, "double"),
    /** bfloat16: the upper half of a binary32, with 8 exponent bits and 7 fraction bits. */
    BFLOAT16(9, 2, true, "bfloat16"),
    /** OCP 8-bit floating-point number with 4 exponent bits and 3 fraction bits, without infinities. */
    FLOAT8_E4M3(10, 1, true, "f8e4m3"),
    /** OCP 8-bit floating-point number with 5 exponent bits and 2 fraction bits. */
    FLOAT8_E5M2(11, 1, true, "f8e5m2");

    private static final DataType[] BY_CODE = values();

    private final int code;
    private final int bytes;
    private final boolean floating;
    private final String label;

    DataType(int code, int bytes, boolean floating, String label) {
        this.code = code;
        this.bytes = bytes;
        this.floating = floating;
        this.label = label;
    }

    /** {@return the type's value of {@code ncclDataType_t}: 0 to 11} */
    public int code() {
        return code;
    }

    /** {@return the size of one element in bytes: 1, 2, 4 or 8} */
    public int bytes() {
        return bytes;
    }

    /** {@return whether elements are floating-point numbers} */
    public boolean isFloating() {
        return floating;
    }

    /** {@return the name that nccl-tests prints and accepts, for instance {@code "float"} or {@code "bfloat16"}} */
    public String label() {
        return label;
    }

    /**
     * {@return the type with a code}
     *
     * @param code a value of {@code ncclDataType_t}
     * @throws IllegalArgumentException if NCCL has no such type
     */
    public static DataType ofCode(int code) {
        if (code < 0 || code >= BY_CODE.length) {
            throw new IllegalArgumentException("data type code " + code + " is not one of NCCL's: 0 (int8) to "
                    + (BY_CODE.length - 1) + " (f8e5m2)");
        }
        return BY_CODE[code];
    }
}
