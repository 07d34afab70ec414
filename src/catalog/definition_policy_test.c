/* definition_policy_test.c - each policy of a container: what it becomes, and what is refused. */
#include "catalog/definition_test_int.h"

typedef struct NormalRow {
    const char *members;  /* of the body */
    const char *part;     /* a name, or two with a '.' between */
    const char *expected; /* NULL if it is not kept */
} NormalRow;

typedef struct RefusalRow {
    const char *members;
    const char *message; /* a part of it */
} RefusalRow;

static Json find_part(Json normal, const char *part)
{
    Slice rest = slice_from_cstr(part);
    Json value = normal;
    while (rest.len > 0)
        value = json_get(value, slice_cut(&rest, '.'));
    return value;
}

static void check_normal(const NormalRow *rows, size_t count)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 14);
    for (size_t i = 0; i < count; ++i) {
        Json normal;
        Error err;
        print_message("%s\n", rows[i].members);
        if (row_create(&arena, rows[i].members, &normal, &err) != STATUS_OK)
            fail_msg("refused: %s", err.message);
        Json part = find_part(normal, rows[i].part);
        assert_int_equal(json_is(part, JSON_UNDEFINED), rows[i].expected == NULL);
        if (rows[i].expected != NULL)
            assert_text(&arena, part, rows[i].expected);

        Json again;
        if (container_definition_create(&arena, normal, (ContainerRules){0}, &again, &err) !=
            STATUS_OK)
            fail_msg("the normal form is refused: %s", err.message);
        assert_true(slice_equal(json_print_arena(&arena, again), json_print_arena(&arena, normal)));
        arena_reset(&arena);
    }
}

static void check_refusals(const RefusalRow *rows, size_t count)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 14);
    for (size_t i = 0; i < count; ++i) {
        Json normal = JSON_NONE;
        Error err = {.message = ""};
        print_message("%s\n", rows[i].members);
        Status status = row_create(&arena, rows[i].members, &normal, &err);
        assert_refused(status, &err, rows[i].message);
        assert_null(normal.at); /* an output is written only on success */
        arena_reset(&arena);
    }
}

#define ETAG "{'path':'/\\'_etag\\'/?'}"
#define ALL  "'includedPaths':[{'path':'/*'}],'excludedPaths':[" ETAG "]"

static void partition_keys_are_kept_as_sent_with_the_kind_filled_in(void **state)
{
    (void)state;
    /* A name that occurs twice counts the last time, so these replace the row's default key. */
    static const NormalRow ROWS[] = {
        {"", "partitionKey", "{'paths':['/pk'],'kind':'Hash'}"},
        {"'partitionKey':{'paths':['/a/b'],'kind':'hash','version':1}", "partitionKey",
         "{'paths':['/a/b'],'kind':'Hash','version':1}"},
        {"'partitionKey':{'version':2,'kind':'Hash','paths':['/id'],'extra':1}", "partitionKey",
         "{'paths':['/id'],'kind':'Hash','version':2}"},
        {"'partitionKey':{'paths':['/\\'a b\\'/c']}", "partitionKey",
         "{'paths':['/\\'a b\\'/c'],'kind':'Hash'}"},
        {"'partitionKey':{'paths':['/t','/u','/id'],'kind':'MULTIHASH','version':2}",
         "partitionKey", "{'paths':['/t','/u','/id'],'kind':'MultiHash','version':2}"},
        {"'partitionKey':{'paths':['/t'],'kind':'MultiHash','version':2}", "partitionKey",
         "{'paths':['/t'],'kind':'MultiHash','version':2}"},
        {"'partitionKey':{'paths':['/_partitionKey'],'kind':'Hash','systemKey':true}",
         "partitionKey", "{'paths':['/_partitionKey'],'kind':'Hash','systemKey':true}"},
        {"'partitionKey':{'paths':['/_partitionKey'],'systemKey':false}", "partitionKey",
         "{'paths':['/_partitionKey'],'kind':'Hash','systemKey':false}"},
        {"'partitionKey':{'paths':['/pk'],'version':'V1'}", "partitionKey",
         "{'paths':['/pk'],'kind':'Hash','version':1}"},
        {"'partitionKey':{'paths':['/t','/u'],'kind':'MultiHash','version':'v2'}", "partitionKey",
         "{'paths':['/t','/u'],'kind':'MultiHash','version':2}"},
        {"'partitionKey':{'paths':['/pk'],'kind':null,'version':null,'systemKey':null}",
         "partitionKey", "{'paths':['/pk'],'kind':'Hash'}"},
    };
    check_normal(ROWS, ARRAY_COUNT(ROWS));
}

static void partition_keys_that_could_not_route_are_refused(void **state)
{
    (void)state;
    static const RefusalRow ROWS[] = {
        {"'partitionKey':null", "must have a 'partitionKey'"},
        {"'partitionKey':'/pk'", "partitionKey must be an object; found a string"},
        {"'partitionKey':{}", "must be an array of paths; found nothing"},
        {"'partitionKey':{'paths':'/id'}", "must be an array of paths; found a string"},
        {"'partitionKey':{'paths':[]}", "must have at least one path"},
        {"'partitionKey':{'paths':['/a','/b']}", "Too many partition key paths"},
        {"'partitionKey':{'paths':['/a','/b','/c','/d'],'kind':'MultiHash','version':2}",
         "Too many partition key paths: a partitionKey of kind 'MultiHash' has at most 3; found 4"},
        {"'partitionKey':{'paths':['/a','/b'],'kind':'MultiHash'}", "must have 'version' 2"},
        {"'partitionKey':{'paths':['/a','/b'],'kind':'MultiHash','version':1}",
         "must have 'version' 2; found 1"},
        {"'partitionKey':{'paths':['/a','/\\'a\\''],'kind':'MultiHash','version':2}",
         "occurs more than once in partitionKey"},
        {"'partitionKey':{'paths':['id']}",
         "The partition key component definition path 'id' could not be accepted, failed near "
         "position '0'"},
        {"'partitionKey':{'paths':['/a/']}", "failed near position '3'"},
        {"'partitionKey':{'paths':['/a/*']}",
         "failed near position '3'. Partition key paths must contain only valid characters and not "
         "contain a trailing slash or wildcard character."},
        {"'partitionKey':{'paths':['/a/[]']}", "failed near position '3'"},
        {"'partitionKey':{'paths':['/a-b']}", "failed near position '2'"},
        {"'partitionKey':{'paths':[7]}", "must be a string; found a number"},
        {"'partitionKey':{'paths':['/_ts']}", "names a system property"},
        {"'partitionKey':{'paths':['/pk'],'kind':'Range'}", "expected one of: Hash, MultiHash"},
        {"'partitionKey':{'paths':['/pk'],'version':3}", "from 1 to 2; found 3"},
        {"'partitionKey':{'paths':['/pk'],'version':1.5}", "from 1 to 2; found 1.5"},
        {"'partitionKey':{'paths':['/pk'],'version':'2'}", "from 1 to 2; found a string"},
        {"'partitionKey':{'paths':['/pk'],'version':'V3'}", "from 1 to 2; found a string"},
        {"'partitionKey':{'paths':['/a','/b'],'kind':'MultiHash','version':'V1'}",
         "must have 'version' 2"},
        {"'partitionKey':{'paths':['/pk'],'systemKey':true}", "with the path '/_partitionKey'"},
        {"'partitionKey':{'paths':['/pk'],'systemKey':1}", "must be true or false"},
    };
    check_refusals(ROWS, ARRAY_COUNT(ROWS));
}

static void indexing_policies_are_filled_in(void **state)
{
    (void)state;
    static const NormalRow ROWS[] = {
        {"", "indexingPolicy", "{'indexingMode':'consistent','automatic':true," ALL "}"},
        {"'indexingPolicy':null", "indexingPolicy",
         "{'indexingMode':'consistent','automatic':true," ALL "}"},
        {"'indexingPolicy':{}", "indexingPolicy",
         "{'indexingMode':'consistent','automatic':true," ALL "}"},
        {"'indexingPolicy':{'indexingMode':'Consistent','automatic':false,'includedPaths':[],"
         "'excludedPaths':[]}",
         "indexingPolicy", "{'indexingMode':'consistent','automatic':true," ALL "}"},
        {"'indexingPolicy':{'indexingMode':'Lazy','automatic':false}", "indexingPolicy",
         "{'indexingMode':'consistent','automatic':true," ALL "}"},
        {"'indexingPolicy':{'indexingMode':'NONE'}", "indexingPolicy",
         "{'indexingMode':'none','automatic':false,'includedPaths':[],'excludedPaths':[]}"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/'}]}", "indexingPolicy.includedPaths",
         "[{'path':'/*'}]"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*'}],'excludedPaths':[{'path':'/a/*'}]}",
         "indexingPolicy.excludedPaths", "[{'path':'/a/*'}," ETAG "]"},
        {"'indexingPolicy':{'excludedPaths':[{'path':'/*'}]}", "indexingPolicy",
         "{'indexingMode':'consistent','automatic':true,'includedPaths':[],"
         "'excludedPaths':[{'path':'/*'}," ETAG "]}"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*'}],'excludedPaths':["
         "{'path':'/_etag/?'}]}",
         "indexingPolicy.excludedPaths", "[{'path':'/_etag/?'}]"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*'},{'path':'/_etag/?'}]}",
         "indexingPolicy.excludedPaths", "[]"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*','indexes':[{'kind':'Range','dataType':"
         "'Number','precision':-1},{'kind':'hash','dataType':'string','precision':3}]}]}",
         "indexingPolicy.includedPaths", "[{'path':'/*'}]"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*'},{'path':'/t/[]/\\'x y\\'/?'},{'path':"
         "'/e/[]/{name, category}/?'}]}",
         "indexingPolicy.includedPaths",
         "[{'path':'/*'},{'path':'/t/[]/\\'x y\\'/?'},{'path':'/e/[]/{name, category}/?'}]"},
        /* The same place as a value and as a subtree is two different paths. */
        {"'indexingPolicy':{'includedPaths':[{'path':'/*'},{'path':'/a/?'}],'excludedPaths':["
         "{'path':'/a/*'}]}",
         "indexingPolicy.includedPaths", "[{'path':'/*'},{'path':'/a/?'}]"},
    };
    check_normal(ROWS, ARRAY_COUNT(ROWS));
}

static void indexing_policies_that_contradict_themselves_are_refused(void **state)
{
    (void)state;
    static const RefusalRow ROWS[] = {
        {"'indexingPolicy':[]", "indexingPolicy must be an object; found an array"},
        {"'indexingPolicy':{'indexingMode':'eager'}",
         "is 'eager'; expected one of: consistent, none, lazy."},
        {"'indexingPolicy':{'indexingMode':7}", "must be a string; found a number"},
        {"'indexingPolicy':{'automatic':'yes'}", "must be true or false; found a string"},
        {"'indexingPolicy':{'indexingMode':'none','automatic':true}", "must be false"},
        {"'indexingPolicy':{'indexingMode':'none','includedPaths':[{'path':'/*'}]}",
         "'includedPaths' of indexingPolicy must be empty"},
        {"'indexingPolicy':{'indexingMode':'none','spatialIndexes':[{'path':'/*'}]}",
         "'spatialIndexes' of indexingPolicy must be empty"},
        {"'indexingPolicy':{'includedPaths':{}}", "must be an array; found an object"},
        {"'indexingPolicy':{'includedPaths':['/*']}", "must hold objects with a text 'path'"},
        {"'indexingPolicy':{'excludedPaths':[{'path':7}]}", "must hold objects with a text 'path'"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/a/?'}]}", "special mandatory indexing path"},
        {"'indexingPolicy':{'excludedPaths':[{'path':'/a/?'}]}", "special mandatory indexing path"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*'}],'excludedPaths':[{'path':'/'}]}",
         "'/*' is given in both includedPaths and excludedPaths"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*'},{'path':'/a/?'},{'path':'/\\'a\\'/?'}]}",
         "more than once in the same list"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*'},{'path':'/a/?'}],'excludedPaths':["
         "{'path':'/a/?'}]}",
         "'/a/?' is given in both"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/expiration'}]}",
         "The indexing path '/expiration' could not be accepted as an included path, failed near "
         "position '11'"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*'}],'excludedPaths':[{'path':"
         "'/e/[]/{a}/?'}]}",
         "as an excluded path, failed near position '11'"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*','indexes':{}}]}", "must be an array"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*','indexes':[1]}]}", "must be an object"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*','indexes':[{'kind':'Tree'}]}]}",
         "expected one of: Range, Hash, Spatial"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*','indexes':[{'dataType':'Date'}]}]}",
         "expected one of: String, Number"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*','indexes':[{'precision':101}]}]}",
         "from -1 to 100; found 101"},
    };
    check_refusals(ROWS, ARRAY_COUNT(ROWS));
}

#define COMPOSITE(list) "'indexingPolicy':{'compositeIndexes':" list "}"
#define SPATIAL(list)   "'indexingPolicy':{'spatialIndexes':" list "}"
#define TYPES           "'types':['Point','LineString','Polygon','MultiPolygon']"
#define GEOMETRY        ",'geospatialConfig':{'type':'Geometry'}"

static void composite_and_spatial_indexes_are_filled_in(void **state)
{
    (void)state;
    static const NormalRow ROWS[] = {
        {COMPOSITE("[]"), "indexingPolicy.compositeIndexes", NULL},
        {COMPOSITE("[[{'path':'/a'},{'path':'/b/c','order':'Descending'}]]"),
         "indexingPolicy.compositeIndexes",
         "[[{'path':'/a','order':'ascending'},{'path':'/b/c','order':'descending'}]]"},
        {COMPOSITE("[[{'path':'/a'},{'path':'/b'}],[{'path':'/b'},{'path':'/a'}],[{'path':'/a'},"
                   "{'path':'/b','order':'descending'}],[{'path':'/t/[]/x'},{'path':'/b'}]]"),
         "indexingPolicy.compositeIndexes",
         "[[{'path':'/a','order':'ascending'},{'path':'/b','order':'ascending'}],[{'path':'/b',"
         "'order':'ascending'},{'path':'/a','order':'ascending'}],[{'path':'/a','order':"
         "'ascending'},{'path':'/b','order':'descending'}],[{'path':'/t/[]/x','order':'ascending'},"
         "{'path':'/b','order':'ascending'}]]"},
        {SPATIAL("[]"), "indexingPolicy.spatialIndexes", NULL},
        {SPATIAL("[{'path':'/loc/*','types':['point']},{'path':'/area/?','types':['Polygon']}]"),
         "indexingPolicy.spatialIndexes",
         "[{'path':'/loc/*'," TYPES "},{'path':'/area/?'," TYPES "}]"},
        {SPATIAL("[{'path':'/','types':['Point']}]"), "indexingPolicy.spatialIndexes",
         "[{'path':'/*'," TYPES "}]"},
        {SPATIAL(
             "[{'path':'/r/?','types':['Polygon'],'boundingBox':{'ymax':10,'xmin':-1.5,'ymin':0,"
             "'xmax':10,'more':1}}]") GEOMETRY,
         "indexingPolicy.spatialIndexes",
         "[{'path':'/r/?'," TYPES ",'boundingBox':{'xmin':-1.5,'ymin':0,'xmax':10,'ymax':10}}]"},
        /* The older form, beside the newer one for another path and for the same. */
        {"'indexingPolicy':{'includedPaths':[{'path':'/','indexes':[{'kind':'Spatial','dataType':"
         "'Point'}]},{'path':'/loc/?','indexes':[{'kind':'Spatial','dataType':'Point'}]}],"
         "'spatialIndexes':[{'path':'/\\'loc\\'/?','types':['Point']}]}",
         "indexingPolicy.spatialIndexes",
         "[{'path':'/\\'loc\\'/?'," TYPES "},{'path':'/*'," TYPES "}]"},
        {"'geospatialConfig':{'type':'GEOMETRY'}", "geospatialConfig", "{'type':'Geometry'}"},
        {"'geospatialConfig':{}", "geospatialConfig", "{'type':'Geography'}"},
        {"", "geospatialConfig", "{'type':'Geography'}"},
    };
    check_normal(ROWS, ARRAY_COUNT(ROWS));
}

static void composite_and_spatial_indexes_out_of_bounds_are_refused(void **state)
{
    (void)state;
    static const RefusalRow ROWS[] = {
        {COMPOSITE("{}"), "must be an array; found an object"},
        {COMPOSITE("[{}]"), "must be an array of paths with orders; found an object"},
        {COMPOSITE("[[]]"), "has 2 to 8 paths; found 0"},
        {COMPOSITE("[[{'path':'/a'}]]"), "has 2 to 8 paths; found 1"},
        {COMPOSITE("[[{'path':'/a'},{'path':'/b'},{'path':'/c'},{'path':'/d'},{'path':'/e'},"
                   "{'path':'/f'},{'path':'/g'},{'path':'/h'},{'path':'/i'}]]"),
         "has 2 to 8 paths; found 9"},
        {COMPOSITE("[['/a','/b']]"), "must be an object; found a string"},
        {COMPOSITE("[[{'path':'/a/?'},{'path':'/b'}]]"), "'/a/?' could not be accepted"},
        {COMPOSITE("[[{'path':'/a/*'},{'path':'/b'}]]"), "'/a/*' could not be accepted"},
        {COMPOSITE("[[{'path':'/*'},{'path':'/b'}]]"), "'/*' could not be accepted"},
        {COMPOSITE("[[{'path':'/a','order':'up'},{'path':'/b'}]]"),
         "expected one of: ascending, descending"},
        {COMPOSITE("[[{'path':'/a'},{'path':'/\\'a\\'','order':'descending'}]]"),
         "'/a' occurs more than once in a composite index"},
        {COMPOSITE("[[{'path':'/a'},{'path':'/b'}],[{'path':'/a','order':'ascending'},"
                   "{'path':'/b'}]]"),
         "The composite index (/a ASC, /b ASC) is given more than once"},
        {SPATIAL("{}"), "must be an array; found an object"},
        {SPATIAL("['/a/*']"), "must be an object; found a string"},
        {SPATIAL("[{'types':['Point']}]"), "The spatial indexing path '' could not be accepted"},
        {SPATIAL("[{'path':'/a','types':['Point']}]"), "'/a' could not be accepted"},
        {SPATIAL("[{'path':'/a/*'}]"), "The spatial data types array cannot be empty"},
        {SPATIAL("[{'path':'/a/*','types':[]}]"), "The spatial data types array cannot be empty"},
        {SPATIAL("[{'path':'/a/*','types':'Point'}]"), "must be an array; found a string"},
        {SPATIAL("[{'path':'/a/*','types':['Circle']}]"), "The type 'Circle'"},
        {SPATIAL("[{'path':'/a/*','types':[1]}]"), "The type ''"},
        {SPATIAL("[{'path':'/a/*','types':['Point']},{'path':'/\\'a\\'/*','types':['Point']}]"),
         "is given more than once"},
        {SPATIAL("[{'path':'/a/*','types':['Point'],'boundingBox':{'xmin':0,'ymin':0,'xmax':1,"
                 "'ymax':1}}]"),
         "must not have a boundingBox"},
        {SPATIAL("[{'path':'/a/*','types':['Point']}]") GEOMETRY, "must have a boundingBox"},
        {SPATIAL("[{'path':'/a/*','types':['Point'],'boundingBox':[]}]") GEOMETRY,
         "must be an object; found an array"},
        {SPATIAL("[{'path':'/a/*','types':['Point'],'boundingBox':{'xmin':0}}]") GEOMETRY,
         "'ymin' of a boundingBox must be a number; found nothing"},
        {SPATIAL("[{'path':'/a/*','types':['Point'],'boundingBox':{'xmin':1,'ymin':0,'xmax':1,"
                 "'ymax':1}}]") GEOMETRY,
         "must have xmin < xmax and ymin < ymax"},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*'},{'path':'/e/[]/{a}/?','indexes':["
         "{'kind':'Spatial'}]}]}",
         "The tuple '/e/[]/{a}/?' cannot have a spatial index"},
        {"'geospatialConfig':{'type':'Flat'}", "expected one of: Geography, Geometry"},
        {"'geospatialConfig':'Geometry'", "must be an object; found a string"},
    };
    check_refusals(ROWS, ARRAY_COUNT(ROWS));
}

#define V(path, type, dims) \
    "{'path':'" path "','dataType':'" type "','dimensions':" dims ",'distanceFunction':'cosine'}"
#define VECTORS(list, indexes)                                 \
    "'vectorEmbeddingPolicy':{'vectorEmbeddings':[" list "]}," \
    "'indexingPolicy':{'vectorIndexes':[" indexes "]}"

static void vector_policies_are_kept(void **state)
{
    (void)state;
    static const NormalRow ROWS[] = {
        {"", "vectorEmbeddingPolicy", NULL},
        {"'vectorEmbeddingPolicy':{}", "vectorEmbeddingPolicy", "{'vectorEmbeddings':[]}"},
        {"'vectorEmbeddingPolicy':{'vectorEmbeddings':[{'dimensions':4096.0,'path':'/a/v',"
         "'dataType':'Float32','distanceFunction':'DotProduct'}]}",
         "vectorEmbeddingPolicy",
         "{'vectorEmbeddings':[{'path':'/a/v','dataType':'float32','dimensions':4096,"
         "'distanceFunction':'dotproduct'}]}"},
        {VECTORS("", ""), "indexingPolicy.vectorIndexes", NULL},
        {VECTORS(V("/v", "int8", "505"), "{'path':'/v','type':'FLAT'}"),
         "indexingPolicy.vectorIndexes", "[{'path':'/v','type':'flat'}]"},
        {VECTORS(V("/v", "float16", "600"),
                 "{'path':'/\\'v\\'','type':'quantizedFlat','quantizationByteSize':512}"),
         "indexingPolicy.vectorIndexes",
         "[{'path':'/\\'v\\'','type':'quantizedFlat','quantizationByteSize':512}]"},
        {VECTORS(V("/v", "uint8", "400"),
                 "{'path':'/v','type':'diskANN','quantizerType':'Product','quantizationByteSize':8,"
                 "'vectorIndexShardKey':['/country/city'],'indexingSearchListSize':25}"),
         "indexingPolicy.vectorIndexes",
         "[{'path':'/v','type':'diskANN','quantizerType':'product','quantizationByteSize':8,"
         "'indexingSearchListSize':25,'vectorIndexShardKey':['/country/city']}]"},
        {VECTORS(V("/v", "uint8", "400"),
                 "{'path':'/v','type':'diskANN','quantizerType':'spherical',"
                 "'indexingSearchListSize':500}"),
         "indexingPolicy.vectorIndexes",
         "[{'path':'/v','type':'diskANN','quantizerType':'spherical',"
         "'indexingSearchListSize':500}]"},
    };
    check_normal(ROWS, ARRAY_COUNT(ROWS));
}

static void vector_policies_out_of_bounds_are_refused(void **state)
{
    (void)state;
    static const RefusalRow ROWS[] = {
        {"'vectorEmbeddingPolicy':[]", "must be an object; found an array"},
        {"'vectorEmbeddingPolicy':{'vectorEmbeddings':{}}", "must be an array; found an object"},
        {VECTORS("7", ""), "must be an object; found a number"},
        {VECTORS(V("/a/[]/v", "float32", "3"), ""), "has an invalid Path:/a/[]/v"},
        {VECTORS(V("v", "float32", "3"), ""), "has an invalid Path:v"},
        {VECTORS(V("/v", "float33", "3"), ""), "has an invalid DataType:float33"},
        {VECTORS("{'path':'/v'}", ""), "has an invalid DataType:"},
        {VECTORS(V("/v", "float32", "8000"), ""),
         "has Dimensions:8000 which is more than the maximum supported value"},
        {VECTORS(V("/v", "float32", "-1"), ""), "The Vector Embedding Policy has Dimensions:-1"},
        {VECTORS(V("/v", "float32", "0"), ""), "has Dimensions:0"},
        {VECTORS(V("/v", "float32", "null"), ""), "has Dimensions:0"},
        {VECTORS(V("/v", "float32", "1.5"), ""), "must be a whole number"},
        {VECTORS("{'path':'/v','dataType':'int8','dimensions':3,'distanceFunction':'hand'}", ""),
         "has an invalid DistanceFunction:hand"},
        {VECTORS(V("/v", "int8", "3") "," V("/\\'v\\'", "int8", "3"), ""), "occurs more than once"},
        {VECTORS("", "{'path':'/v','type':'flat'}"),
         "The Vector Indexing Policy's path::/v not matching in Embedding's path"},
        {VECTORS(V("/v", "int8", "3"), "{'path':'/w','type':'flat'}"),
         "/w not matching in Embedding's path"},
        {VECTORS(V("/v", "int8", "3"), "{'path':'/v','type':'notFlat'}"),
         "Index Type::notFlat is invalid"},
        {VECTORS(V("/v", "int8", "3"), "{'path':'v','type':'flat'}"), "failed near position '0'"},
        {VECTORS(V("/v", "int8", "3"), "'/v'"), "must be an object; found a string"},
        {VECTORS(V("/v", "int8", "506"), "{'path':'/v','type':'flat'}"),
         "is for at most 505 dimensions; the embedding '/v' has 506"},
        {VECTORS(V("/v", "int8", "256"),
                 "{'path':'/v','type':'quantizedFlat','quantizationByteSize':0}"),
         "QuantizationByteSize value :: 0 is out of range. The allowed range is between 1 and "
         "256."},
        {VECTORS(V("/v", "int8", "550"),
                 "{'path':'/v','type':'quantizedFlat','quantizationByteSize':513}"),
         "QuantizationByteSize value :: 513 is out of range. The allowed range is between 1 and "
         "512."},
        {VECTORS(V("/v", "int8", "9"), "{'path':'/v','type':'diskANN','indexingSearchListSize':5}"),
         "IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 and "
         "500."},
        {VECTORS(V("/v", "int8", "9"),
                 "{'path':'/v','type':'diskANN','indexingSearchListSize':501}"),
         "IndexingSearchListSize value :: 501"},
        {VECTORS(V("/v", "int8", "9"), "{'path':'/v','type':'diskANN','vectorIndexShardKey':"
                                       "['country']}"),
         "The Vector Indexing Policy has an invalid Shard Path: country."},
        {VECTORS(V("/v", "int8", "9"), "{'path':'/v','type':'diskANN','vectorIndexShardKey':"
                                       "['/a','/b','/c']}"),
         "Vector Indexing Policy: 3 exceeds the maximum: 1."},
        {VECTORS(V("/v", "int8", "9"), "{'path':'/v','type':'diskANN','vectorIndexShardKey':'/a'}"),
         "One of the specified inputs is invalid"},
        {VECTORS(V("/v", "int8", "9"), "{'path':'/v','type':'diskANN','quantizerType':'other'}"),
         "expected one of: product, spherical"},
        {VECTORS(V("/v", "int8", "9"), "{'path':'/v','type':'flat','quantizationByteSize':3}"),
         "'quantizationByteSize' does not apply to a vector index of type 'flat'"},
        {VECTORS(V("/v", "int8", "9"),
                 "{'path':'/v','type':'quantizedFlat','indexingSearchListSize':30}"),
         "'indexingSearchListSize' does not apply"},
        {VECTORS(V("/v", "int8", "9"),
                 "{'path':'/v','type':'flat'},{'path':'/v','type':'diskANN'}"),
         "occurs more than once in vectorIndexes"},
    };
    check_refusals(ROWS, ARRAY_COUNT(ROWS));
}

static void full_text_policies_are_kept(void **state)
{
    (void)state;
    static const NormalRow ROWS[] = {
        {"", "fullTextPolicy", NULL},
        {"'fullTextPolicy':{}", "fullTextPolicy", "{'defaultLanguage':'en-US'}"},
        {"'fullTextPolicy':{'defaultLanguage':'1033','fullTextPaths':[{'path':'/a','language':"
         "'1033'}]}",
         "fullTextPolicy",
         "{'defaultLanguage':'1033','fullTextPaths':[{'path':'/a','language':'1033'}]}"},
        {"'fullTextPolicy':{'defaultLanguage':'EN-us','fullTextPaths':[{'path':'/a'},{'path':'/b',"
         "'language':'pt-br'}]}",
         "fullTextPolicy",
         "{'defaultLanguage':'en-US','fullTextPaths':[{'path':'/a'},{'path':'/b','language':"
         "'pt-BR'}]}"},
        {"'fullTextPolicy':{'fullTextPaths':[{'path':'/a'}]},'indexingPolicy':{'fullTextIndexes':["
         "{'path':'/\\'a\\''}]}",
         "indexingPolicy.fullTextIndexes", "[{'path':'/\\'a\\''}]"},
        {"'indexingPolicy':{'fullTextIndexes':[]}", "indexingPolicy.fullTextIndexes", NULL},
    };
    check_normal(ROWS, ARRAY_COUNT(ROWS));
}

static void full_text_policies_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const RefusalRow ROWS[] = {
        {"'fullTextPolicy':'en-US'", "must be an object; found a string"},
        {"'fullTextPolicy':{'defaultLanguage':'spa-SPA'}",
         "The Full Text Policy contains an unsupported language spa-SPA. Supported languages are:"},
        {"'fullTextPolicy':{'defaultLanguage':''}", "unsupported language ."},
        {"'fullTextPolicy':{'defaultLanguage':7}", "must be a string; found a number"},
        {"'fullTextPolicy':{'fullTextPaths':[{'path':'/a','language':'xx'}]}",
         "unsupported language xx."},
        {"'fullTextPolicy':{'fullTextPaths':[{'path':'abstract'}]}",
         "The Full Text Policy contains an invalid Path: abstract"},
        {"'fullTextPolicy':{'fullTextPaths':['/a']}", "must be an object; found a string"},
        {"'fullTextPolicy':{'fullTextPaths':[{'path':'/a'},{'path':'/a'}]}",
         "occurs more than once in fullTextPolicy"},
        {"'indexingPolicy':{'fullTextIndexes':[{'path':'/p'}]}",
         "The path of the Full Text Index /p does not match the path specified in the Full Text "
         "Policy"},
        {"'fullTextPolicy':{'fullTextPaths':[{'path':'/a'}]},'indexingPolicy':{'fullTextIndexes':["
         "{'path':'a'}]}",
         "Full-text index specification at index (0) contains invalid path"},
        {"'indexingPolicy':{'fullTextIndexes':[{'not_path':'a'}]}",
         "Missing path in full-text index specification at index (0)"},
        {"'indexingPolicy':{'fullTextIndexes':['/a']}", "Missing path in full-text"},
        {"'fullTextPolicy':{'fullTextPaths':[{'path':'/a'}]},'indexingPolicy':{'fullTextIndexes':["
         "{'path':'/a'},{'path':'/a'}]}",
         "occurs more than once in fullTextIndexes"},
    };
    check_refusals(ROWS, ARRAY_COUNT(ROWS));
}

static void unique_keys_are_kept(void **state)
{
    (void)state;
    static const NormalRow ROWS[] = {
        {"", "uniqueKeyPolicy", NULL},
        {"'uniqueKeyPolicy':{}", "uniqueKeyPolicy", "{'uniqueKeys':[]}"},
        {"'uniqueKeyPolicy':{'uniqueKeys':[{'paths':['/a','/b/c'],'x':1},{'paths':['/b/c','/a']}]}",
         "uniqueKeyPolicy", "{'uniqueKeys':[{'paths':['/a','/b/c']},{'paths':['/b/c','/a']}]}"},
    };
    check_normal(ROWS, ARRAY_COUNT(ROWS));
}

static void unique_keys_out_of_bounds_are_refused(void **state)
{
    (void)state;
    static const RefusalRow ROWS[] = {
        {"'uniqueKeyPolicy':[]", "must be an object; found an array"},
        {"'uniqueKeyPolicy':{'uniqueKeys':{}}", "must be an array; found an object"},
        {"'uniqueKeyPolicy':{'uniqueKeys':['/a']}", "must be an object with an array 'paths'"},
        {"'uniqueKeyPolicy':{'uniqueKeys':[{'paths':[]}]}", "has 1 to 16 paths; found 0"},
        {"'uniqueKeyPolicy':{'uniqueKeys':[{'paths':['/a','/b','/c','/d','/e','/f','/g','/h','/i',"
         "'/j','/k','/l','/m','/n','/o','/p','/q']}]}",
         "has 1 to 16 paths; found 17"},
        {"'uniqueKeyPolicy':{'uniqueKeys':[{'paths':['/a']},{'paths':['/b']},{'paths':['/c']},"
         "{'paths':['/d']},{'paths':['/e']},{'paths':['/f']},{'paths':['/g']},{'paths':['/h']},"
         "{'paths':['/i']},{'paths':['/j']},{'paths':['/k']}]}",
         "has 11 elements; the maximum is 10"},
        {"'uniqueKeyPolicy':{'uniqueKeys':[{'paths':['/a/[]/b']}]}",
         "The unique key path '/a/[]/b' could not be accepted, failed near position '3'"},
        {"'uniqueKeyPolicy':{'uniqueKeys':[{'paths':[7]}]}", "The unique key path ''"},
        {"'uniqueKeyPolicy':{'uniqueKeys':[{'paths':['/a','/\\'a\\'']}]}",
         "'/a' occurs more than once in a unique key"},
        {"'uniqueKeyPolicy':{'uniqueKeys':[{'paths':['/a','/b']},{'paths':['/a','/\\'b\\'']}]}",
         "have the same paths: /a,/b"},
    };
    check_refusals(ROWS, ARRAY_COUNT(ROWS));
}

#define CONFLICT(members) "'conflictResolutionPolicy':{" members "}"
#define ENCRYPT(version, path, type)                                                              \
    "'clientEncryptionPolicy':{'policyFormatVersion':" version ",'includedPaths':[{'path':'" path \
    "','clientEncryptionKeyId':'k','encryptionType':'" type                                       \
    "','encryptionAlgorithm':'AEAD_AES_256_CBC_HMAC_SHA256'}]}"

static void the_other_policies_are_filled_in(void **state)
{
    (void)state;
    static const NormalRow ROWS[] = {
        {"", "conflictResolutionPolicy",
         "{'mode':'LastWriterWins','conflictResolutionPath':'/_ts',"
         "'conflictResolutionProcedure':''}"},
        {CONFLICT("'mode':'lastwriterwins','conflictResolutionPath':'/a'"),
         "conflictResolutionPolicy",
         "{'mode':'LastWriterWins','conflictResolutionPath':'/a',"
         "'conflictResolutionProcedure':''}"},
        {CONFLICT(
             "'mode':'LastWriterWins','conflictResolutionPath':'','conflictResolutionProcedure':"
             "null"),
         "conflictResolutionPolicy",
         "{'mode':'LastWriterWins','conflictResolutionPath':'/_ts',"
         "'conflictResolutionProcedure':''}"},
        {CONFLICT("'mode':'CUSTOM','conflictResolutionPath':null,'conflictResolutionProcedure':''"),
         "conflictResolutionPolicy",
         "{'mode':'Custom','conflictResolutionPath':'','conflictResolutionProcedure':''}"},
        {CONFLICT("'mode':'Custom','conflictResolutionProcedure':'dbs/d/colls/c/sprocs/s'"),
         "conflictResolutionPolicy",
         "{'mode':'Custom','conflictResolutionPath':'','conflictResolutionProcedure':"
         "'dbs/d/colls/c/sprocs/s'}"},
        {"", "defaultTtl", NULL},
        {"'defaultTtl':-1", "defaultTtl", "-1"},
        {"'defaultTtl':1", "defaultTtl", "1"},
        {"'defaultTtl':2147483647.0", "defaultTtl", "2147483647"},
        {"", "analyticalStorageTtl", NULL},
        {"'analyticalStorageTtl':0", "analyticalStorageTtl", NULL},
        {"'analyticalStorageTtl':-1", "analyticalStorageTtl", "-1"},
        {"'analyticalStorageTtl':7776000", "analyticalStorageTtl", "7776000"},
        {"", "changeFeedPolicy", NULL},
        {"'changeFeedPolicy':{}", "changeFeedPolicy", "{'retentionDuration':0}"},
        {"'changeFeedPolicy':{'retentionDuration':10}", "changeFeedPolicy",
         "{'retentionDuration':10}"},
        {"", "computedProperties", NULL},
        {"'computedProperties':[]", "computedProperties", "[]"},
        {"'computedProperties':[{'query':'SELECT VALUE 1 FROM c','name':'one','x':2}]",
         "computedProperties", "[{'name':'one','query':'SELECT VALUE 1 FROM c'}]"},
        /* A computed property may have an index of its own. */
        {"'computedProperties':[{'name':'one','query':'q'}],'indexingPolicy':{'includedPaths':["
         "{'path':'/*'},{'path':'/one/?'}]}",
         "computedProperties", "[{'name':'one','query':'q'}]"},
        {"'computedProperties':[{'name':'ID','query':'q'}]", "computedProperties",
         "[{'name':'ID','query':'q'}]"},
        {"", "clientEncryptionPolicy", NULL},
        {ENCRYPT("1", "/ssn", "randomized"), "clientEncryptionPolicy",
         "{'includedPaths':[{'path':'/ssn','clientEncryptionKeyId':'k','encryptionType':"
         "'Randomized','encryptionAlgorithm':'AEAD_AES_256_CBC_HMAC_SHA256'}],"
         "'policyFormatVersion':1}"},
        {ENCRYPT("2", "/pk", "Deterministic"), "clientEncryptionPolicy",
         "{'includedPaths':[{'path':'/pk','clientEncryptionKeyId':'k','encryptionType':"
         "'Deterministic','encryptionAlgorithm':'AEAD_AES_256_CBC_HMAC_SHA256'}],"
         "'policyFormatVersion':2}"},
        {"'clientEncryptionPolicy':{}", "clientEncryptionPolicy",
         "{'includedPaths':[],'policyFormatVersion':1}"},
    };
    check_normal(ROWS, ARRAY_COUNT(ROWS));
}

static void other_policies_out_of_bounds_are_refused(void **state)
{
    (void)state;
    static const RefusalRow ROWS[] = {
        {CONFLICT("'mode':'FirstWriterWins'"), "expected one of: LastWriterWins, Custom"},
        {CONFLICT("'mode':'Custom','conflictResolutionPath':'/a'"),
         "Custom conflict resolution mode should not have conflict resolution path set."},
        {CONFLICT("'conflictResolutionProcedure':'p'"),
         "LastWriterWins conflict resolution mode should not have conflict resolution procedure "
         "set."},
        {CONFLICT("'conflictResolutionPath':'a'"),
         "Invalid path 'a' for last writer wins conflict resolution"},
        {CONFLICT("'conflictResolutionPath':'/a/b'"),
         "Invalid path '/a/b' for last writer wins conflict resolution"},
        {CONFLICT("'conflictResolutionPath':1"), "must be a string; found a number"},
        {"'conflictResolutionPolicy':'Custom'", "must be an object; found a string"},
        {"'defaultTtl':0", "from 1 to 2147483647; found 0"},
        {"'defaultTtl':-2", "found -2"},
        {"'defaultTtl':1.5", "found 1.5"},
        {"'defaultTtl':2147483648", "found 2147483648"},
        {"'defaultTtl':1e300", "found 1"},
        {"'defaultTtl':null", "must be a whole number of seconds; found null"},
        {"'defaultTtl':'60'", "must be a whole number of seconds; found a string"},
        {"'defaultTtl':5,'indexingPolicy':{'indexingMode':'none'}", "needs the 'indexingMode'"},
        {"'analyticalStorageTtl':-2", "from 0 to 2147483647; found -2"},
        {"'changeFeedPolicy':5", "must be an object; found a number"},
        {"'changeFeedPolicy':{'retentionDuration':-1}", "from 0 to"},
        {"'computedProperties':{}", "must be an array; found an object"},
        {"'computedProperties':[7]", "must be an object; found a number"},
        {"'computedProperties':[{'query':'q'}]",
         "Computed property 'name' is either empty or unspecified."},
        {"'computedProperties':[{'name':'','query':'q'}]",
         "Computed property 'name' is either empty or unspecified."},
        {"'computedProperties':[{'name':'n'}]",
         "Computed property 'query' is either empty or unspecified."},
        {"'computedProperties':[{'name':'id','query':'q'}]",
         "The system property name 'id' cannot be used as a computed property name."},
        {"'computedProperties':[{'name':'_ts','query':'q'}]", "The system property name '_ts'"},
        {"'computedProperties':[{'name':'n','query':'q'},{'name':'n','query':'r'}]",
         "Computed property name 'n' cannot be used in multiple definitions."},
        {"'computedProperties':[{'name':'a','query':'q'},{'name':'spot','query':'q'}],"
         "'indexingPolicy':{'spatialIndexes':[{'path':'/spot/*','types':['Point']}]}",
         "Computed property 'spot' at index (1) has a spatial index. Remove the spatial index on "
         "this path."},
        {"'computedProperties':[{'name':'v','query':'q'}]," VECTORS(V("/v", "int8", "9"),
                                                                    "{'path':'/v','type':'flat'}"),
         "Computed property 'v' at index (0) has a vector or full-text index"},
        {"'clientEncryptionPolicy':[]", "must be an object; found an array"},
        {ENCRYPT("3", "/ssn", "Randomized"), "from 1 to 2; found 3"},
        {ENCRYPT("1", "/a/b", "Randomized"), "must name a property of the item itself"},
        {ENCRYPT("1", "ssn", "Randomized"), "failed near position '0'"},
        {ENCRYPT("1", "/ssn", "Random"), "expected one of: Deterministic, Randomized"},
        {ENCRYPT("1", "/id", "Deterministic"), "only be encrypted with policyFormatVersion 2"},
        {ENCRYPT("1", "/pk", "Deterministic"), "only be encrypted with policyFormatVersion 2"},
        {ENCRYPT("2", "/id", "Randomized"), "must have the encryptionType 'Deterministic'"},
        {ENCRYPT("2", "/pk", "Randomized"), "must have the encryptionType 'Deterministic'"},
        {"'clientEncryptionPolicy':{'includedPaths':[1]}", "must hold objects; found a number"},
        {"'clientEncryptionPolicy':{'includedPaths':[{'path':'/a'}]}",
         "'clientEncryptionKeyId' of the path '/a' is missing"},
        {"'clientEncryptionPolicy':{'includedPaths':[{'path':'/a','clientEncryptionKeyId':'k'}]}",
         "'encryptionType'"},
        {"'clientEncryptionPolicy':{'includedPaths':[{'path':'/a','clientEncryptionKeyId':'k',"
         "'encryptionType':'Randomized','encryptionAlgorithm':'ROT13'}]}",
         "expected one of: AEAD_AES_256_CBC_HMAC_SHA256"},
    };
    check_refusals(ROWS, ARRAY_COUNT(ROWS));
}

/* {"path":"/p0/?"},{"path":"/p1/?"}...: rows are too long to write down. */
static const char *many(Arena *arena, const char *format, size_t count)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    for (size_t i = 0; i < count; ++i) {
        buf_slice(&text, i == 0 ? SLICE_EMPTY : SLICE(","));
        for (const char *c = format; *c != '\0'; ++c) {
            if (*c == '#')
                buf_u64(&text, i);
            else
                buf_byte(&text, (uint8_t)*c);
        }
    }
    return arena_cstr(arena, buf_view(&text));
}

static void lists_have_the_length_that_the_limits_say(void **state)
{
    (void)state;
    static const struct {
        const char *before, *element, *after;
        size_t count_max;
    } ROWS[] = {
        {"'indexingPolicy':{'excludedPaths':[{'path':'/*'}],'includedPaths':[", "{'path':'/p#/?'}",
         "]}", INDEX_PATHS_MAX},
        {"'indexingPolicy':{'includedPaths':[{'path':'/*'}],'excludedPaths':[", "{'path':'/p#/?'}",
         "]}", INDEX_PATHS_MAX},
        {"'indexingPolicy':{'spatialIndexes':[", "{'path':'/p#/?','types':['Point']}", "]}",
         INDEX_PATHS_MAX},
        {"'indexingPolicy':{'compositeIndexes':[", "[{'path':'/p#'},{'path':'/q'}]", "]}",
         COMPOSITE_INDEXES_MAX},
        {"'computedProperties':[", "{'name':'n#','query':'q'}", "]", COMPUTED_PROPERTIES_MAX},
        {"'vectorEmbeddingPolicy':{'vectorEmbeddings':[", V("/v#", "int8", "3"), "]}",
         POLICY_PATHS_MAX},
        {"'fullTextPolicy':{'fullTextPaths':[", "{'path':'/t#'}", "]}", POLICY_PATHS_MAX},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        for (size_t extra = 0; extra <= 1; ++extra) {
            const char *list = many(&arena, ROWS[i].element, ROWS[i].count_max + extra);
            Slice members = arena_format(&arena, "%s%s%s", ROWS[i].before, list, ROWS[i].after);
            Json normal, again;
            Error err;
            print_message("%s %zu\n", ROWS[i].before, ROWS[i].count_max + extra);
            Status status = row_create(&arena, arena_cstr(&arena, members), &normal, &err);
            if (extra == 1) {
                assert_refused(status, &err, "the maximum is");
            } else {
                assert_int_equal(status, STATUS_OK);
                assert_int_equal(
                    container_definition_create(&arena, normal, (ContainerRules){0}, &again, &err),
                    STATUS_OK);
            }
            arena_reset(&arena);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partition_keys_are_kept_as_sent_with_the_kind_filled_in),
        cmocka_unit_test(partition_keys_that_could_not_route_are_refused),
        cmocka_unit_test(indexing_policies_are_filled_in),
        cmocka_unit_test(indexing_policies_that_contradict_themselves_are_refused),
        cmocka_unit_test(composite_and_spatial_indexes_are_filled_in),
        cmocka_unit_test(composite_and_spatial_indexes_out_of_bounds_are_refused),
        cmocka_unit_test(vector_policies_are_kept),
        cmocka_unit_test(vector_policies_out_of_bounds_are_refused),
        cmocka_unit_test(full_text_policies_are_kept),
        cmocka_unit_test(full_text_policies_that_do_not_fit_are_refused),
        cmocka_unit_test(unique_keys_are_kept),
        cmocka_unit_test(unique_keys_out_of_bounds_are_refused),
        cmocka_unit_test(the_other_policies_are_filled_in),
        cmocka_unit_test(other_policies_out_of_bounds_are_refused),
        cmocka_unit_test(lists_have_the_length_that_the_limits_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
