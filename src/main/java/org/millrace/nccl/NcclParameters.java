package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.millrace.ffi.nccl.nccl_h;
import org.millrace.library.NativeLibrary;

/**
 * NCCL's own settings, {@code NCCL_*}, with the values that NCCL has read: {@link NcclLibrary#parameters()}. Requires
 * NCCL 2.30.4, which exposes only a few of its settings in this way.
 */
public final class NcclParameters {

    private final NcclLibrary library;

    NcclParameters(NcclLibrary library) {
        this.library = library;
    }

    /**
     * {@return the names of all settings that NCCL documents; with {@code NCCL_PARAM_DUMP_ALL=true}, also the names of
     * the other settings}
     */
    @SuppressWarnings("restricted") // the array gets the length that NCCL has returned
    public List<String> names() {
        library.require(NcclFunction.PARAM_GET_ALL_PARAMETER_KEYS);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment table = arena.allocate(ValueLayout.ADDRESS);
            MemorySegment count = arena.allocate(ValueLayout.JAVA_INT);
            library.check(NcclFunction.PARAM_GET_ALL_PARAMETER_KEYS, nccl_h.ncclParamGetAllParameterKeys(table, count));
            int names = count.get(ValueLayout.JAVA_INT, 0);
            MemorySegment texts =
                    table.get(ValueLayout.ADDRESS, 0).reinterpret((long) names * ValueLayout.ADDRESS.byteSize());
            List<String> all = new ArrayList<>();
            for (int i = 0; i < names; i++) {
                all.add(NativeLibrary.text(texts.getAtIndex(ValueLayout.ADDRESS, i)));
            }
            return all;
        }
    }

    /** {@return the value of a setting as text; empty if the loaded NCCL has no such setting} */
    public Optional<String> text(String name) {
        library.require(NcclFunction.PARAM_GET_PARAMETER);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment value = arena.allocate(ValueLayout.ADDRESS);
            MemorySegment length = arena.allocate(ValueLayout.JAVA_INT);
            int code = nccl_h.ncclParamGetParameter(arena.allocateFrom(name), value, length);
            if (code == nccl_h.ncclInvalidArgument()) {
                return Optional.empty();
            }
            library.check(NcclFunction.PARAM_GET_PARAMETER, code);
            return Optional.ofNullable(NativeLibrary.text(value.get(ValueLayout.ADDRESS, 0)));
        }
    }

    /** {@return an object that can read a setting repeatedly; empty if the loaded NCCL has no such setting} */
    public Optional<Parameter> bind(String name) {
        library.require(NcclFunction.PARAM_BIND);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            int code = nccl_h.ncclParamBind(out, arena.allocateFrom(name));
            if (code == nccl_h.ncclInvalidArgument()) {
                return Optional.empty();
            }
            library.check(NcclFunction.PARAM_BIND, code);
            return Optional.of(new Parameter(library, name, out.get(ValueLayout.ADDRESS, 0)));
        }
    }

    /** Makes NCCL print all settings to standard output. */
    public void print() {
        library.require(NcclFunction.PARAM_DUMP_ALL);
        nccl_h.ncclParamDumpAll();
    }

    /** One of NCCL's settings. */
    public static final class Parameter {

        /** An integer type of settings, with NCCL's function that reads a setting of this type. */
        private enum Integers {
            INT64(NcclFunction.PARAM_GET_I64, 64, true, nccl_h::ncclParamGetI64),
            INT32(NcclFunction.PARAM_GET_I32, 32, true, nccl_h::ncclParamGetI32),
            INT16(NcclFunction.PARAM_GET_I16, 16, true, nccl_h::ncclParamGetI16),
            INT8(NcclFunction.PARAM_GET_I8, 8, true, nccl_h::ncclParamGetI8),
            UINT64(NcclFunction.PARAM_GET_U64, 64, false, nccl_h::ncclParamGetU64),
            UINT32(NcclFunction.PARAM_GET_U32, 32, false, nccl_h::ncclParamGetU32),
            UINT16(NcclFunction.PARAM_GET_U16, 16, false, nccl_h::ncclParamGetU16),
            UINT8(NcclFunction.PARAM_GET_U8, 8, false, nccl_h::ncclParamGetU8);

            private interface Getter {
                int get(MemorySegment parameter, MemorySegment out);
            }

            private final NcclFunction function;
            private final int unusedBits;
            private final boolean signed;
            private final Getter getter;

            Integers(NcclFunction function, int bits, boolean signed, Getter getter) {
                this.function = function;
                this.unusedBits = Long.SIZE - bits;
                this.signed = signed;
                this.getter = getter;
            }

            BigInteger value(MemorySegment eight) {
                long bits = eight.get(ValueLayout.JAVA_LONG, 0) << unusedBits;
                return signed ? BigInteger.valueOf(bits >> unusedBits)
                        : new BigInteger(Long.toUnsignedString(bits >>> unusedBits));
            }
        }

        private static final int MAX_BYTES = 4096;

        private final NcclLibrary library;
        private final String name;
        private final MemorySegment handle;

        Parameter(NcclLibrary library, String name, MemorySegment handle) {
            this.library = library;
            this.name = name;
            this.handle = handle;
        }

        public String name() {
            return name;
        }

        /**
         * {@return the value of an integer setting of any size, signed or unsigned; empty for a setting of another
         * type}
         */
        public Optional<BigInteger> integer() {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
                for (Integers type : Integers.values()) {
                    library.require(type.function);
                    int code = type.getter.get(handle, out);
                    if (code != nccl_h.ncclInvalidArgument()) { // another type of setting
                        library.check(type.function, code);
                        return Optional.of(type.value(out));
                    }
                }
                return Optional.empty();
            }
        }

        /** {@return the value of a text setting; empty for a setting of another type} */
        public Optional<String> text() {
            library.require(NcclFunction.PARAM_GET_STR);
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
                int code = nccl_h.ncclParamGetStr(handle, out);
                if (code == nccl_h.ncclInvalidArgument()) {
                    return Optional.empty();
                }
                library.check(NcclFunction.PARAM_GET_STR, code);
                return Optional.ofNullable(NativeLibrary.text(out.get(ValueLayout.ADDRESS, 0)));
            }
        }

        /** {@return the setting's value in NCCL's binary representation, at most 4096 bytes} */
        public byte[] bytes() {
            library.require(NcclFunction.PARAM_GET);
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment out = arena.allocate(MAX_BYTES);
                MemorySegment length = arena.allocate(ValueLayout.JAVA_INT);
                library.check(NcclFunction.PARAM_GET, nccl_h.ncclParamGet(handle, out, MAX_BYTES, length));
                return out.asSlice(0, Math.clamp(length.get(ValueLayout.JAVA_INT, 0), 0, MAX_BYTES))
                        .toArray(ValueLayout.JAVA_BYTE);
            }
        }

        @Override
        public String toString() {
            return name;
        }
    }
}
