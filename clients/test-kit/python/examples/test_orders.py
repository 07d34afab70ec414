# pytest: pip install pytest azure-cosmos, then pytest examples
import pytest
from azure.cosmos import CosmosClient


@pytest.fixture
def orders(orrery_restored):
    server = orrery_restored("shop")
    client = CosmosClient.from_connection_string(server.connection_string)
    return client.get_database_client("shop").get_container_client("orders")


def test_an_order_is_deleted(orders):
    orders.delete_item("1", partition_key="ada")
    assert [item["id"] for item in orders.read_all_items()] == ["2"]


def test_the_next_test_sees_the_orders_of_the_seed_file_again(orders):
    assert orders.read_item("1", partition_key="ada")["total"] == 42
