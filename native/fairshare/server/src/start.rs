//! How a server begins: its state, and the threads beside the workers.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::sync::Arc;

use crate::config::Config;
use crate::data::DataFolder;
use crate::door::Door;
use crate::errno::{Errno, Result};
use crate::log::Log;
use crate::peers::Exchange;
use crate::server::Server;
use crate::{lanes, metrics, peers, slurm};

pub fn start(config: Config, data: DataFolder, door: Door, log: Log) -> Result<Arc<Server>> {
    let key = data.key.for_servers();
    let exchange = match &config.exchange {
        Some(address) => Some(Exchange {
            socket: UdpSocket::bind(address)?,
            peers: config
                .peers
                .iter()
                .map(|peer| resolve(peer))
                .collect::<Result<_>>()?,
            key,
            lambda: config.lambda,
        }),
        None => None,
    };
    let numbers = config.metrics.as_ref().map(TcpListener::bind).transpose()?;
    let (server, jobs_asked_for) = Server::new(config, data, door, log)?;
    lanes::start(&server);
    if let Some(exchange) = exchange {
        peers::start(&server, exchange);
    }
    if let Some(listener) = numbers {
        metrics::start(&server, listener)?;
    }
    let asks = Arc::downgrade(&server);
    slurm::start(jobs_asked_for, server.config.slurm.clone(), move |job, nodes| {
        let Some(server) = asks.upgrade() else {
            return false;
        };
        if let Some(nodes) = nodes {
            server.slurm.found(job, nodes);
            server.resize_job(&format!("slurm-{job}"), nodes);
        }
        true
    });
    Ok(server)
}

fn resolve(address: &str) -> Result<SocketAddr> {
    address
        .to_socket_addrs()?
        .next()
        .ok_or(Errno(libc::EADDRNOTAVAIL))
}
