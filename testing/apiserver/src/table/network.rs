//! The columns of services and of what they lead to.

use serde_json::Value;

use super::column::{AGE, Column, NAME, Row, list_at, or, or_none, pairs, text, text_at};

pub(super) const SERVICE: &[Column] = &[
    NAME,
    text("Type", |row| row.text_or("/spec/type", "ClusterIP").into()),
    text("Cluster-IP", |row| row.text_or("/spec/clusterIPs/0", row.text_or("/spec/clusterIP", "<none>")).into()),
    text("External-IP", |row| external_ip(row).into()),
    text("Port(s)", |row| or_none(service_ports(row)).into()),
    AGE,
    text("Selector", |row| or_none(pairs(row.object.pointer("/spec/selector"))).into()).wide(),
];

pub(super) const ENDPOINTS: &[Column] = &[NAME, text("Endpoints", |row| or_none(endpoints(row)).into()), AGE];

pub(super) const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    text("AddressType", |row| row.text("/addressType").into()),
    text("Ports", |row| {
        let ports = row.list("/ports").iter();
        let number = |port: &Value| port["port"].as_i64().map(|number| number.to_string());
        let name = |port: &Value| port["name"].as_str().map_or("*".to_owned(), str::to_owned);
        let ports: Vec<_> = ports.map(|port| number(port).unwrap_or_else(|| name(port))).collect();
        or(first_three(&ports), "<unset>").into()
    }),
    text("Endpoints", |row| {
        let endpoints = row.list("/endpoints").iter().flat_map(|endpoint| list_at(endpoint, "/addresses"));
        let addresses: Vec<_> = endpoints.filter_map(Value::as_str).map(str::to_owned).collect();
        or(first_three(&addresses), "<unset>").into()
    }),
    AGE,
];

fn external_ip(row: &Row<'_>) -> String {
    let external = row.list("/spec/externalIPs").iter().filter_map(Value::as_str);
    match row.text_or("/spec/type", "ClusterIP") {
        "ClusterIP" | "NodePort" => or_none(external.collect::<Vec<_>>().join(",")),
        "LoadBalancer" => {
            let ingress = row.list("/status/loadBalancer/ingress").iter();
            let mut addresses: Vec<_> = ingress
                .filter_map(|ingress| {
                    ["/ip", "/hostname"].into_iter().map(|p| text_at(ingress, p)).find(|address| !address.is_empty())
                })
                .collect();
            addresses.sort_unstable();
            addresses.dedup();
            addresses.extend(external);
            or(addresses.join(","), "<pending>")
        }
        "ExternalName" => row.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn service_ports(row: &Row<'_>) -> String {
    let port = |port: &Value| {
        let number = port["port"].as_i64().unwrap_or_default();
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        match port["nodePort"].as_i64() {
            Some(node_port @ 1..) => format!("{number}:{node_port}/{protocol}"),
            _ => format!("{number}/{protocol}"),
        }
    };
    row.list("/spec/ports").iter().map(port).collect::<Vec<_>>().join(",")
}

fn endpoints(row: &Row<'_>) -> String {
    let mut all = Vec::new();
    for subset in row.list("/subsets") {
        let addresses = || list_at(subset, "/addresses").iter().map(|address| text_at(address, "/ip"));
        let ports = list_at(subset, "/ports");
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports.iter().map(|port| port["port"].as_i64().unwrap_or_default()) {
            let join = |ip: &str| if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") };
            all.extend(addresses().map(join));
        }
    }
    first_three(&all)
}

fn first_three(all: &[String]) -> String {
    match all.split_at_checked(3) {
        Some((first, rest)) if !rest.is_empty() => format!("{} + {} more...", first.join(","), rest.len()),
        _ => all.join(","),
    }
}
