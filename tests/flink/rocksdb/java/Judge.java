import java.io.BufferedWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.rocksdb.*;

/**
 * RocksDB itself, from Spark's jars. Each argument is a command, with spaces between its words: `write FOLDER SEED
 * COMPRESSION CHECKSUM FORMAT INDEX` writes a database with random changes; `rows FOLDER OUT` writes one line for each
 * row: column family, key and value in hexadecimal.
 */
public class Judge {
    private static final int CHANGES = 4000, KEYS = 400, INGESTED = 20;

    public static void main(String[] args) throws Exception {
        RocksDB.loadLibrary();
        for (String command : args) {
            String[] words = command.split(" ");
            if (words[0].equals("write")) {
                write(words[1], Long.parseLong(words[2]), words[3], words[4], Integer.parseInt(words[5]), words[6]);
            } else {
                rows(words[1], Path.of(words[2]));
            }
        }
    }

    private static StringAppendOperator lists() {
        return new StringAppendOperator(',');
    }

    private static void write(String folder, long seed, String compression, String checksum, int format, String index)
            throws Exception {
        BlockBasedTableConfig table = new BlockBasedTableConfig()
            .setFormatVersion(format)
            .setChecksumType(ChecksumType.valueOf(checksum))
            .setIndexType(IndexType.valueOf(index))
            .setBlockSize(512)
            .setMetadataBlockSize(512);
        if (index.equals("kBinarySearch") && seed % 2 == 0) {
            table.setDataBlockIndexType(DataBlockIndexType.kDataBlockBinaryAndHash);
        }
        ColumnFamilyOptions options = new ColumnFamilyOptions()
            .setMergeOperator(lists())
            .setTableFormatConfig(table)
            .setCompressionType(CompressionType.valueOf(compression))
            .setLevel0FileNumCompactionTrigger(4)
            .setTargetFileSizeBase(8 << 10)
            .setMaxBytesForLevelBase(32 << 10);
        if (index.equals("kHashSearch")) options.useFixedLengthPrefixExtractor(6);
        DBOptions dbOptions = new DBOptions().setCreateIfMissing(true).setCreateMissingColumnFamilies(true);
        List<ColumnFamilyDescriptor> families = List.of(
            new ColumnFamilyDescriptor(RocksDB.DEFAULT_COLUMN_FAMILY, options),
            new ColumnFamilyDescriptor("list".getBytes(StandardCharsets.UTF_8), options),
            new ColumnFamilyDescriptor("dropped".getBytes(StandardCharsets.UTF_8), options));
        List<ColumnFamilyHandle> handles = new ArrayList<>();
        Random random = new Random(seed);
        WriteOptions unlogged = new WriteOptions().setDisableWAL(true);
        try (RocksDB db = RocksDB.open(dbOptions, folder, families, handles)) {
            for (int i = 0; i < CHANGES; i++) change(db, handles.get(random.nextInt(2)), unlogged, random, i);
            db.put(handles.get(2), unlogged, key(1), value(random, 1));
            for (ColumnFamilyHandle handle : handles) db.flush(new FlushOptions().setWaitForFlush(true), handle);
            ingest(db, handles.get(0), folder, options, random);
            // Tombstones in upper levels that hide rows of lower ones.
            db.deleteRange(handles.get(0), unlogged, key(40), key(60));
            db.put(handles.get(0), unlogged, key(50), value(random, 2));
            db.flush(new FlushOptions().setWaitForFlush(true), handles.get(0));
            db.dropColumnFamily(handles.get(2));
        }
    }

    private static void change(RocksDB db, ColumnFamilyHandle family, WriteOptions unlogged, Random random, int i)
            throws RocksDBException {
        byte[] key = key(random.nextInt(KEYS));
        double kind = random.nextDouble();
        if (kind < 0.4) db.put(family, unlogged, key, value(random, i));
        else if (kind < 0.8) db.merge(family, unlogged, key, value(random, i));
        else if (kind < 0.95) db.delete(family, unlogged, key);
        else {
            int from = random.nextInt(KEYS);
            db.deleteRange(family, unlogged, key(from), key(from + 1 + random.nextInt(20)));
        }
        if (random.nextInt(150) == 0) db.flush(new FlushOptions().setWaitForFlush(true), family);
        if (random.nextInt(1500) == 0) db.compactRange(family);
    }

    private static void ingest(
            RocksDB db, ColumnFamilyHandle family, String folder, ColumnFamilyOptions options, Random random)
            throws RocksDBException {
        String file = folder + "-ingested.sst";
        try (SstFileWriter writer = new SstFileWriter(new EnvOptions(), new Options(new DBOptions(), options))) {
            writer.open(file);
            for (int i = 0; i < INGESTED; i++) writer.put(key(100 + i), value(random, i));
            writer.finish();
        }
        db.ingestExternalFile(family, List.of(file), new IngestExternalFileOptions());
    }

    private static byte[] key(int number) {
        return String.format("key-%04d", number).getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] value(Random random, int i) {
        byte[] value = new byte[random.nextInt(60)];
        java.util.Arrays.fill(value, (byte) ('a' + i % 26));
        return value;
    }

    private static void rows(String folder, Path out) throws Exception {
        List<ColumnFamilyDescriptor> families = new ArrayList<>();
        for (byte[] name : RocksDB.listColumnFamilies(new Options(), folder)) {
            families.add(new ColumnFamilyDescriptor(name, new ColumnFamilyOptions().setMergeOperator(lists())));
        }
        List<ColumnFamilyHandle> handles = new ArrayList<>();
        HexFormat hex = HexFormat.of();
        try (RocksDB db = RocksDB.openReadOnly(new DBOptions(), folder, families, handles);
                BufferedWriter lines = Files.newBufferedWriter(out)) {
            for (ColumnFamilyHandle handle : handles) {
                String name = hex.formatHex(handle.getName());
                lines.write(name + "\n");
                try (RocksIterator rows = db.newIterator(handle)) {
                    for (rows.seekToFirst(); rows.isValid(); rows.next()) {
                        lines.write(name + " " + hex.formatHex(rows.key()) + " " + hex.formatHex(rows.value()) + "\n");
                    }
                    rows.status();
                }
            }
        }
    }
}
