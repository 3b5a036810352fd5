/**
 * Windows by handle, their memory behind {@link org.millrace.gin.window.WindowMemory}, so that it may be a GPU's, and
 * what lies between such memory and a network: transfers, staging buffers, staging rings. Knows no descriptors and no
 * frames.
 */
@NullMarked
package org.millrace.gin.window;

import org.jspecify.annotations.NullMarked;
