package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Properties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Operation;
import org.millrace.abi.Protocol;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.engine.EngineOptions.TransferOptions;

/** The meaning of NCCL_PROTO and NCCL_P2P_LL_THRESHOLD. */
class ProtocolChoiceTest {

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            LL,LL128,Simple        | SIMPLE
            simple                 | SIMPLE
            LL                     | LL
            ^LL                    | SIMPLE
            ^LL128                 | SIMPLE
            ^simple                | LL128
            ^ll, simple            | LL128
            LL;allreduce:Simple    | SIMPLE
            LL;broadcast:Simple    | LL
            Simple;broadcast:LL    | SIMPLE
            allreduce : ^LL,LL128  | SIMPLE
            """)
    void theBestThatIsAllowedIsChosen(String text, Protocol expected) {
        assertEquals(expected, ProtocolChoice.parse(text).of(Operation.ALL_REDUCE));
        assertEquals(Protocol.SIMPLE, ProtocolChoice.parse(text).of(Operation.SEND_RECEIVE));
    }

    @Test
    void unsetIsSimple() {
        assertEquals(Protocol.SIMPLE,
                ProtocolChoice.of(Configuration.load(Map.of(), new Properties(), Map.of())).of(Operation.BROADCAST));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            LL64              | there is no protocol ll64
            ^LL,LL128,Simple  | no protocol is left
            allscatter:LL     | there is no function allscatter
            ''                | there is no protocol
            """)
    void whatIsNotUnderstoodIsRefused(String text, String because) {
        String message = assertThrows(ConfigurationException.class, () -> ProtocolChoice.parse(text)).getMessage();
        assertTrue(message.contains(because) && message.contains("Allowed: LL, LL128 and Simple"), message);
    }

    @ParameterizedTest
    @CsvSource({", 0, SIMPLE, 16384", "0, 0, LL, 16384", "16K, 16384, LL, 16384", "16K, 16385, SIMPLE, 16384"})
    void aTransferTravelsInLLUpToAThreshold(String threshold, long bytes, Protocol expected, long chunkBytes) {
        TransferOptions options = options(threshold == null ? Map.of("NCCL_BUFFSIZE", "128K")
                : Map.of("NCCL_P2P_LL_THRESHOLD", threshold, "NCCL_BUFFSIZE", "128K"));
        assertEquals(expected, options.protocol(bytes));
        assertEquals(chunkBytes, options.chunkBytes());
    }

    /** With shared slots, the default size of a chunk is 128 KiB, as in NCCL. A chunk is never larger than a slot. */
    @ParameterizedTest
    @CsvSource({"0, 8M, , 1048576", "1, 8M, , 131072", "1, 128K, , 16384", "1, 8M, 2K, 2048", "0, 8M, 2K, 2048",
            "0, 64K, 1M, 8192"})
    void aChunkFitsIntoASlot(String shares, String buffer, String chunk, long expected) {
        Map<String, String> settings =
                new java.util.HashMap<>(Map.of("NCCL_NET_SHARED_BUFFERS", shares, "NCCL_BUFFSIZE", buffer));
        if (chunk != null) {
            settings.put("NCCL_P2P_NET_CHUNKSIZE", chunk);
        }
        assertEquals(expected, options(settings).chunkBytes());
    }

    @ParameterizedTest
    @CsvSource({"2, , false", "16, , false", "17, , true", "100, 0, false", "2, 1, true"})
    void manyPeersShareSlots(int ranks, String set, boolean shares) {
        Map<String, String> settings = set == null ? Map.of() : Map.of("NCCL_NET_SHARED_BUFFERS", set);
        assertEquals(shares,
                TransferOptions.of(Configuration.load(Map.of(), new Properties(), settings), ranks).sharesSlots());
    }

    private static TransferOptions options(Map<String, String> settings) {
        return TransferOptions.of(Configuration.load(Map.of(), new Properties(), settings), 2);
    }
}
