// What a user of the Java SDK does in a day: the scenario of ../README.md, in Java.
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.CosmosScripts;
import com.azure.cosmos.CosmosStoredProcedure;
import com.azure.cosmos.CosmosUserDefinedFunction;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureResponse;
import com.azure.cosmos.models.CosmosTriggerProperties;
import com.azure.cosmos.models.CosmosTriggerResponse;
import com.azure.cosmos.models.CosmosUserDefinedFunctionProperties;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.TriggerOperation;
import com.azure.cosmos.models.TriggerType;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;

public final class Program {
    private static final int TENANTS = 40;
    private static final int USERS = 5;
    private static final int TOTAL = TENANTS * USERS;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final CosmosContainer container;

    private Program(CosmosContainer container) {
        this.container = container;
    }

    public static void main(String[] arguments) {
        try (CosmosClient client = new CosmosClientBuilder()
                .endpoint(System.getenv("COSMOS_TLS_ENDPOINT"))
                .key(System.getenv("COSMOS_KEY"))
                .gatewayMode()
                .contentResponseOnWriteEnabled(true)
                .buildClient()) {
            client.createDatabase("java");
            CosmosDatabase database = client.getDatabase("java");
            Program program = new Program(create(database));
            step("crud", program::crud);
            step("patch", program::patch);
            step("batch", program::batch);
            step("bulk", program::bulk);
            step("queries", program::queries);
            step("resumed", program::resumed);
            step("scripts", program::scripts);
            database.delete();
            System.out.println("ok whole");
        }
        // Threads of the SDK would keep the program alive for a while.
        System.exit(0);
    }

    private static void step(String name, Runnable run) {
        run.run();
        System.out.println("ok " + name);
    }

    private static CosmosContainer create(CosmosDatabase database) {
        PartitionKeyDefinition keys = new PartitionKeyDefinition()
            .setKind(PartitionKind.MULTI_HASH)
            .setVersion(PartitionKeyDefinitionVersion.V2)
            .setPaths(List.of("/tenant", "/user", "/session"));
        database.createContainer(new CosmosContainerProperties("orders", keys),
            ThroughputProperties.createManualThroughput(30000));
        CosmosContainer container = database.getContainer("orders");
        expect("feed ranges", container.getFeedRanges().size(), 5);
        expect("throughput", container.readThroughput().getProperties().getManualThroughput(), 30000);
        PartitionKeyDefinition stored = container.read().getProperties().getPartitionKeyDefinition();
        expect("version of the key", stored.getVersion(), PartitionKeyDefinitionVersion.V2);
        return container;
    }

    private void crud() {
        PartitionKey key = keyOf("crud", "u");
        String stale = container.createItem(item("one", "crud", "u").put("n", 1)).getETag();
        expect("read", read("one", key).get("n").asInt(), 1);
        refused("second create", 409, () -> container.createItem(item("one", "crud", "u")));
        CosmosItemRequestOptions ifMatch = new CosmosItemRequestOptions().setIfMatchETag(stale);
        ObjectNode two = item("one", "crud", "u").put("n", 2);
        container.replaceItem(two, "one", key, ifMatch);
        refused("replace with an old ETag", 412, () -> container.replaceItem(two, "one", key, ifMatch));
        container.upsertItem(item("one", "crud", "u").put("n", 3));
        expect("upsert", read("one", key).get("n").asInt(), 3);
        container.deleteItem("one", key, new CosmosItemRequestOptions());
        refused("read after delete", 404, () -> read("one", key));
    }

    private void patch() {
        PartitionKey key = keyOf("patch", "u");
        container.createItem(item("p", "patch", "u").put("n", 1).put("old", true));
        CosmosPatchOperations operations = CosmosPatchOperations.create()
            .increment("/n", 4).set("/state", "paid").remove("/old");
        ObjectNode patched = container.patchItem("p", key, operations, ObjectNode.class).getItem();
        expect("patch", List.of(patched.get("n").asInt(), patched.get("state").asText(), patched.has("old")),
            List.of(5, "paid", false));
        CosmosPatchItemRequestOptions condition = new CosmosPatchItemRequestOptions()
            .setFilterPredicate("FROM c WHERE c.n = 1");
        refused("patch whose condition is not met", 412, () -> container.patchItem("p", key,
            CosmosPatchOperations.create().set("/state", "x"), condition, ObjectNode.class));
    }

    private void batch() {
        PartitionKey key = keyOf("batch", "u");
        CosmosBatch whole = CosmosBatch.createCosmosBatch(key);
        whole.createItemOperation(item("a", "batch", "u"));
        whole.upsertItemOperation(item("b", "batch", "u"));
        whole.readItemOperation("a");
        whole.deleteItemOperation("b");
        expect("batch", statuses(container.executeCosmosBatch(whole)), List.of(201, 201, 200, 204));

        CosmosBatch failing = CosmosBatch.createCosmosBatch(key);
        failing.createItemOperation(item("c", "batch", "u"));
        failing.createItemOperation(item("a", "batch", "u"));
        expect("batch with a conflict", statuses(container.executeCosmosBatch(failing)), List.of(424, 409));
        refused("what a failed batch created", 404, () -> read("c", key));
    }

    private void bulk() {
        List<CosmosItemOperation> operations = new ArrayList<>();
        for (int n = 0; n < TOTAL; n++) {
            ObjectNode order = item("order-" + n, "t" + n / USERS, "u" + n % USERS).put("n", n).put("kind", n % 4);
            operations.add(CosmosBulkOperations.getCreateItemOperation(order, keyOf("t" + n / USERS, "u" + n % USERS)));
        }
        container.executeBulkOperations(operations).forEach(response -> {
            if (response.getException() != null)
                throw new AssertionError("bulk", response.getException());
            expect("status of a bulk operation", response.getResponse().getStatusCode(), 201);
        });
        List<CosmosItemIdentity> many = IntStream.range(0, 50)
            .mapToObj(n -> new CosmosItemIdentity(keyOf("t" + n / USERS, "u" + n % USERS), "order-" + n)).toList();
        expect("read many", container.readMany(many, ObjectNode.class).getResults().size(), 50);
    }

    private void queries() {
        List<Integer> all = IntStream.range(0, TOTAL).boxed().toList();
        List<Integer> down = IntStream.range(0, TOTAL).mapToObj(n -> TOTAL - 1 - n).toList();
        expect("count", numbers("SELECT VALUE COUNT(1) FROM c WHERE IS_DEFINED(c.kind)"), List.of(TOTAL));
        expect("sum", numbers("SELECT VALUE SUM(c.n) FROM c WHERE IS_DEFINED(c.kind)"),
            List.of(TOTAL * (TOTAL - 1) / 2));
        expect("filter", numbers("SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.kind)").stream().sorted().toList(), all);
        expect("order", numbers("SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.kind) ORDER BY c.n DESC"), down);
        expect("distinct", numbers("SELECT DISTINCT VALUE c.kind FROM c WHERE IS_DEFINED(c.kind)").stream().sorted()
            .toList(), List.of(0, 1, 2, 3));
        expect("offset and limit",
            numbers("SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.kind) ORDER BY c.n OFFSET 10 LIMIT 5"),
            List.of(10, 11, 12, 13, 14));
        expect("top 0", numbers("SELECT TOP 0 VALUE c.n FROM c"), List.of());
        List<String> groups = new ArrayList<>();
        container.queryItems("SELECT c.kind, COUNT(1) AS count FROM c WHERE IS_DEFINED(c.kind) GROUP BY c.kind",
            new CosmosQueryRequestOptions(), ObjectNode.class)
            .forEach(group -> groups.add(group.get("kind").asInt() + ":" + group.get("count").asInt()));
        expect("groups", groups.stream().sorted().toList(),
            IntStream.range(0, 4).mapToObj(kind -> kind + ":" + TOTAL / 4).toList());
        expect("whole key", numbers("SELECT VALUE c.n FROM c",
            new CosmosQueryRequestOptions().setPartitionKey(keyOf("t7", "u3"))), List.of(38));
        expect("prefix of the key", numbers("SELECT VALUE c.n FROM c ORDER BY c.n",
            new CosmosQueryRequestOptions().setPartitionKey(new PartitionKeyBuilder().add("t7").build())),
            List.of(35, 36, 37, 38, 39));
        SqlQuerySpec withParameter = new SqlQuerySpec("SELECT VALUE c.id FROM c WHERE c.n = @n AND IS_DEFINED(c.kind)",
            new SqlParameter("@n", 42));
        expect("parameter", container.queryItems(withParameter, new CosmosQueryRequestOptions(), String.class).stream()
            .toList(), List.of("order-42"));
    }

    private void resumed() {
        String ordered = "SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.kind) ORDER BY c.n";
        List<Integer> found = new ArrayList<>();
        String token = null;
        do {
            FeedResponse<JsonNode> page = container
                .queryItems(ordered, new CosmosQueryRequestOptions(), JsonNode.class)
                .iterableByPage(token, 30).iterator().next();
            page.getResults().forEach(n -> found.add(n.asInt()));
            token = page.getContinuationToken();
        } while (token != null);
        expect("pages resumed by their tokens", found, IntStream.range(0, TOTAL).boxed().toList());
    }

    private void scripts() {
        CosmosScripts scripts = container.getScripts();
        String body = "function () {\r\n}";
        SqlQuerySpec byId =
                new SqlQuerySpec("SELECT * FROM root r WHERE r.id=@id", new SqlParameter("@id", "a script"));
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions();

        CosmosStoredProcedureProperties procedure = new CosmosStoredProcedureProperties("a script", body);
        CosmosStoredProcedureResponse made = scripts.createStoredProcedure(procedure);
        expect("status", made.getStatusCode(), 201);
        expect("body", made.getProperties().getBody(), body);
        refused("a second one", 409, () -> scripts.createStoredProcedure(procedure));
        CosmosStoredProcedure one = scripts.getStoredProcedure("a script");
        expect("version", one.read().getProperties().getETag(), made.getProperties().getETag());
        expect("list", scripts.readAllStoredProcedures().stream().count(), 1L);
        expect("query", scripts.queryStoredProcedures(byId, options).stream().count(), 1L);
        one.replace(made.getProperties().setBody("x => x")); // by its self link
        expect("replaced", one.read().getProperties().getBody(), "x => x");
        one.delete();
        refused("after its end", 404, one::read);

        CosmosTriggerProperties trigger = new CosmosTriggerProperties(" odd é[]{}%20", body);
        trigger.setTriggerType(TriggerType.POST).setTriggerOperation(TriggerOperation.CREATE);
        CosmosTriggerResponse stored = scripts.createTrigger(trigger);
        expect("type", stored.getProperties().getTriggerType(), TriggerType.POST);
        expect("operation", stored.getProperties().getTriggerOperation(), TriggerOperation.CREATE);
        expect("triggers", scripts.readAllTriggers().stream().count(), 1L);
        scripts.getTrigger(" odd é[]{}%20").delete();
        expect("no triggers", scripts.readAllTriggers().stream().count(), 0L);

        scripts.createUserDefinedFunction(new CosmosUserDefinedFunctionProperties("a script", body));
        CosmosUserDefinedFunction function = scripts.getUserDefinedFunction("a script");
        function.replace(function.read().getProperties().setBody("x => x"));
        expect("function", function.read().getProperties().getBody(), "x => x");
        expect("functions", scripts.queryUserDefinedFunctions(byId, options).stream().count(), 1L);
        function.delete();
        refused("a function after its end", 404, function::read);
    }

    private List<Integer> numbers(String text) {
        return numbers(text, new CosmosQueryRequestOptions());
    }

    private List<Integer> numbers(String text, CosmosQueryRequestOptions options) {
        return container.queryItems(text, options, JsonNode.class).stream().map(JsonNode::asInt).toList();
    }

    private ObjectNode read(String id, PartitionKey key) {
        return container.readItem(id, key, ObjectNode.class).getItem();
    }

    private static ObjectNode item(String id, String tenant, String user) {
        return JSON.createObjectNode().put("id", id).put("tenant", tenant).put("user", user).put("session", "s");
    }

    private static PartitionKey keyOf(String tenant, String user) {
        return new PartitionKeyBuilder().add(tenant).add(user).add("s").build();
    }

    private static List<Integer> statuses(CosmosBatchResponse response) {
        return response.getResults().stream().map(result -> result.getStatusCode()).toList();
    }

    private static void expect(String what, Object found, Object wanted) {
        if (!Objects.equals(found, wanted))
            throw new AssertionError(what + ": expected " + wanted + ", found " + found);
    }

    private static void refused(String what, int status, Runnable call) {
        try {
            call.run();
        } catch (CosmosException error) {
            expect(what, error.getStatusCode(), status);
            return;
        }
        throw new AssertionError(what + ": expected a refusal with " + status);
    }
}
