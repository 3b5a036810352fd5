package org.millrace.net.ucx;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.lang.syntax.ArchRuleDefinition;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.net.ucx.UcxNetwork.UcxUnavailableException;

class UcxLibraryTest {

    @ParameterizedTest
    @CsvSource({"1, 12", "1, 8", "0, 99", "2, 0"})
    void otherReleasesAreRefusedWithWhatToDo(int major, int minor) {
        UcxUnavailableException refused = assertThrows(UcxUnavailableException.class,
                () -> UcxLibrary.checkVersion(major, minor, "/opt/libucp.so.0"));
        assertTrue(refused.getMessage()
                .startsWith("/opt/libucp.so.0 is UCX " + major + "." + minor
                        + ", and 1.13 or a newer 1.x is needed: update it, or name another libucp.so.0 with "
                        + "MILLRACE_UCX_LIBRARY"),
                refused.getMessage());
        assertFalse(refused.isMissing());
    }

    @Test
    void theOldestThatServesAndLaterOnesAreTaken() {
        assertDoesNotThrow(() -> UcxLibrary.checkVersion(1, 13, "libucp.so.0"));
        assertDoesNotThrow(() -> UcxLibrary.checkVersion(1, 19, "libucp.so.0"));
    }

    @Test
    void aLibraryThatIsNotThereIsMissing() {
        UcxUnavailableException missing =
                assertThrows(UcxUnavailableException.class, () -> UcxLibrary.open("/nowhere/libucp.so.0"));
        assertTrue(missing.isMissing());
        assertTrue(missing.getMessage().contains("/nowhere/libucp.so.0"), missing.getMessage());
        assertTrue(missing.getMessage().contains("MILLRACE_UCX_LIBRARY"), missing.getMessage());
    }

    @Test
    void whatCarriesBytesIsKnown() {
        Ucx.assumeUsable();
        UcxContext tcp = UcxContext.get(Optional.empty(), Map.of("TLS", "tcp"));
        assertTrue(tcp.transports().contains("tcp/lo"), tcp.transports().toString());
        assertFalse(tcp.sharesMemory());
        assertFalse(tcp.reachesRemoteMemory());
        assertTrue(UcxContext.get(Optional.empty(), Map.of("TLS", "posix,self")).sharesMemory());
        UcxUnavailableException refused = assertThrows(UcxUnavailableException.class,
                () -> UcxContext.get(Optional.empty(), Map.of("TLS", "no-such-transport")));
        assertTrue(refused.getMessage().contains("UCX cannot be initialized"), refused.getMessage());
    }

    /**
     * Millrace passes no Java function to UCX, because an upcall costs more time than a step of a proxy, and may arrive
     * on any thread.
     */
    @Test
    void nothingIsCalledFromC() {
        ArchRuleDefinition.noClasses()
                .should()
                .callMethodWhere(com.tngtech.archunit.core.domain.JavaCall.Predicates
                        .target(com.tngtech.archunit.core.domain.properties.HasName.Predicates.name("upcallStub")))
                .check(new ClassFileImporter().withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
                        .importPackages("org.millrace.net.ucx", "org.millrace.ffi.ucx"));
    }
}
