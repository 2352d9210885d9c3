// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkbench;

import java.io.File;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.assigners.FileSplitAssigner;
import org.apache.flink.connector.file.src.enumerate.FileEnumerator;
import org.apache.flink.core.fs.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;

/**
 * Splits of a folder of Parquet files: a row group each, in the order of the files' names. Flink's own assigner hands
 * splits out in any order, and then events would be late.
 */
final class RowGroups implements FileEnumerator {

    /** Hands splits out in their order. */
    static final class InOrder implements FileSplitAssigner {
        private final ArrayDeque<FileSourceSplit> splits;

        InOrder(Collection<FileSourceSplit> splits) {
            this.splits = new ArrayDeque<>(splits);
        }

        @Override
        public Optional<FileSourceSplit> getNext(String hostname) {
            return Optional.ofNullable(splits.poll());
        }

        @Override
        public void addSplits(Collection<FileSourceSplit> returned) {
            List<FileSourceSplit> all = new ArrayList<>(returned);
            all.addAll(splits);
            splits.clear();
            splits.addAll(all);
        }

        @Override
        public Collection<FileSourceSplit> remainingSplits() {
            return new ArrayList<>(splits);
        }
    }

    private final int files;

    /**
     * @param files number of files, the first by name
     */
    RowGroups(int files) {
        this.files = files;
    }

    @Override
    public Collection<FileSourceSplit> enumerateSplits(Path[] paths, int minDesiredSplits) throws IOException {
        List<FileSourceSplit> splits = new ArrayList<>();
        File[] found = new File(paths[0].getPath()).listFiles((folder, name) -> name.endsWith(".parquet"));
        Arrays.sort(found);
        for (File file : Arrays.copyOf(found, Math.min(files, found.length))) {
            org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path(file.toURI());
            try (ParquetFileReader reader =
                    ParquetFileReader.open(HadoopInputFile.fromPath(path, new Configuration()))) {
                for (BlockMetaData group : reader.getFooter().getBlocks()) {
                    splits.add(new FileSourceSplit(
                            String.format("%06d", splits.size()), new Path(file.toURI()), group.getStartingPos(),
                            group.getCompressedSize(), file.lastModified(), file.length()));
                }
            }
        }
        return splits;
    }
}
