package org.millrace.nccl;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.millrace.cuda.NativeBuild;
import org.millrace.cuda.OwnClassLoader;

/** AMD's library exports NCCL's functions under a different file name. */
@ExtendWith(OwnClassLoader.class)
class RcclTest {

    @Test
    void aFolderThatHasOnlyRcclIsUsed() {
        Path rccl = NativeBuild.stub("nccl.c", "librccl.so.1");
        NcclLibrary library = NcclLibrary.load(rccl.getParent().toString());
        assertEquals(rccl, library.library().path());
        assertEquals("2.28.9", library.versionText());
        assertEquals(rccl, NcclLibrary.probe(null).path());
    }
}
